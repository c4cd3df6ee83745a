#pragma once
// Finds text in a picture and reads it: PP-OCR's detector and recogniser on lamina.
#include <lamina/lamina.h>

#include <string>
#include <vector>

#include "picture.h"

// A model ready to run, and what it takes to compare it with its unoptimised graph.
class Net {
 public:
  Net(const std::string& path, int threads);
  lamina::Tensor operator()(const lamina::Tensor& input);
  // Prints what was fused, the latency, and how much faster that is than the graph as it stands in the file.
  void report(const std::string& title, const lamina::Tensor& input);
  const lamina::Model& model() const { return model_; }

 private:
  lamina::Model model_;
  lamina::CompiledModel compiled_, plain_;
  lamina::Request request_;
};

// Where the detector sees text, from top to bottom. `input` gets the tensor that the detector was given.
std::vector<Box> find_text(Net& detector, const Picture& picture, lamina::Tensor& input);

struct Reading {
  std::string text;
  double confidence = 0;
};
Reading read_text(Net& recogniser, const std::vector<std::string>& alphabet, const Picture& line,
                  lamina::Tensor& input);

// The recogniser's characters, from the model's metadata; class 0 is "nothing", the last one a blank.
std::vector<std::string> alphabet_of(const lamina::Model& model);
