#pragma once
/// Random numbers for those who compare two runs.

namespace lamina {

/// While one lives, random operators without seeds repeat their numbers in the whole process, so that a plan
/// and the interpreter can be compared. Nodes of different names still give different numbers.
class RepeatedDraws {
 public:
  RepeatedDraws();
  ~RepeatedDraws();
  RepeatedDraws(const RepeatedDraws&) = delete;
  RepeatedDraws& operator=(const RepeatedDraws&) = delete;
};

}  // namespace lamina
