// Is compiled as C++17, which must end in a sentence that says what lamina needs.
#include <lamina/lamina.h>

int main() { return 0; }
