// What a tool writes, for people.
#pragma once

#include <string>

namespace pipec {

class Written {
 public:
  // Before it is written: a file or a folder, which may be there already.
  void Add(const std::string& path);
  // A line each, in the order of Add: "wrote a.onnx", "replaced b.json".
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

}  // namespace pipec
