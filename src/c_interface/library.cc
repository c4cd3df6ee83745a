/// The library as a whole: version, errors, shutdown, extensions that are linked into the program.
#include "c_interface/call.h"
#include "lamina/model.h"

using namespace lamina;
using namespace lamina::c_interface;

const char* lamina_c_version(void) { return "lamina " LAMINA_VERSION; }
const char* lamina_c_last_error(void) { return last_error(); }

const char* lamina_c_status_name(lamina_c_status status) {
  static constexpr const char* kNames[]{
      "ok",       "bad_file", "bad_input", "bad_option", "unsupported", "bad_call", "out_of_memory",
      "internal", "busy",     "canceled",  "extension",  "over_limit",  "callback"};
  return status >= LAMINA_C_OK && status <= LAMINA_C_CALLBACK ? kNames[status] : "unknown";
}

lamina_c_status lamina_c_shutdown(void) {
  return call("lamina_c_shutdown", [] { shutdown(); });
}

lamina_c_status lamina_c_register_extension(const char* name,
                                            int (*entry)(const struct lamina_host* host,
                                                         struct lamina_registrar* registrar)) {
  return call("lamina_c_register_extension",
              [&] { register_extension(text_argument(name, "the name"), entry); });
}
