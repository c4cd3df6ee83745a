/// The grammar of the Model Optimizer's options.
#include <gtest/gtest.h>

#include "formats/read_error.h"
#include "offline/faq.h"
#include "offline/mean_file.h"
#include "offline/request.h"

namespace lamina {
namespace {

/// The question that a call fails with; 0: it does not.
template <class F>
int question(F&& call) {
  try {
    call();
    return 0;
  } catch (const FaqError& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_option);
    return e.question();
  }
}

TEST(Inputs, HavePortsShapesTypesAndValues) {
  const auto all = parse_inputs("--input", "data,0:conv[1 3 4 4]{f16}, relu:1(2,?,1..5,..7)->3,a/b[]->[1 2]");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].place, "data");
  EXPECT_FALSE(all[0].shape || all[0].value);
  EXPECT_EQ(all[1].place, "0:conv");
  EXPECT_EQ(to_string(*all[1].shape), "[1,3,4,4]");
  EXPECT_EQ(all[1].type, ElementType::f16);
  EXPECT_EQ(all[2].place, "relu:1");
  EXPECT_EQ(to_string(*all[2].shape), "[2,?,1..5,0..7]");
  EXPECT_EQ(all[2].value, "3");
  EXPECT_EQ(to_string(*all[3].shape), "[]");
  EXPECT_EQ(all[3].value, "[1 2]");
}

TEST(Inputs, TakeTypesInAllSpellings) {
  for (const auto& [word, type] :
       {std::pair("FP32", ElementType::f32), std::pair("fp16", ElementType::f16),
        std::pair("i64", ElementType::i64), std::pair("bool", ElementType::boolean)})
    EXPECT_EQ(parse_inputs("--input", std::string("x{") + word + "}").at(0).type, type);
  EXPECT_EQ(parse_inputs("--input", "x{u8}[1,2]").at(0).type, ElementType::u8);  // in either order
}

TEST(Inputs, AreRefusedWithTheirQuestions) {
  for (const auto& [text, wanted] :
       {std::pair("a[1,x]", 57), std::pair("a,,b", 57), std::pair("[1,2]", 57), std::pair("a{f33}", 50),
        std::pair("a->", 59), std::pair("a[1", 57), std::pair("a[3..1]", 57), std::pair("a[-2]", 57)})
    EXPECT_EQ(question([&, t = text] { parse_inputs("--input", t); }), wanted) << text;
}

TEST(Shapes, AreListsInBrackets) {
  const auto shapes = parse_shapes("--input_shape", "[1,3,224,224], (1 -1 ? 2..)");
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(to_string(shapes[0]), "[1,3,224,224]");
  EXPECT_EQ(to_string(shapes[1]), "[1,?,?,2..]");
  for (const auto* text : {"1,3", "[1,3", "[a]", "", "(1,3]", "[1,99999999999999999999]"})
    EXPECT_EQ(question([&] { parse_shapes("--input_shape", text); }), 57) << text;
}

TEST(Numbers, HaveNamesOrNone) {
  const auto plain = parse_numbers("--mean_values", "[1,2.5,-3],(4 5 6)");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].numbers, (std::vector<double>{1, 2.5, -3}));
  EXPECT_EQ(plain[1].numbers, (std::vector<double>{4, 5, 6}));
  const auto named = parse_numbers("--mean_values", "a/data:0[1],info(2,3)");
  EXPECT_EQ(named.at(0).name, "a/data:0");
  EXPECT_EQ(named.at(1).numbers, (std::vector<double>{2, 3}));
  for (const auto& [text, wanted] :
       {std::pair("1,2,3", 101), std::pair("[]", 101), std::pair("a[1],[2]", 101), std::pair("[1,two]", 59),
        std::pair("[nan]", 59)})
    EXPECT_EQ(question([&, t = text] { parse_numbers("--mean_values", t); }), wanted) << text;
}

TEST(Layouts, AreReadInAllForms) {
  const auto check = [](const char* text, const char* name, const char* source, const char* target) {
    const auto all = parse_layouts("--layout", text);
    EXPECT_EQ(all.at(0).name, name) << text;
    EXPECT_EQ(all.at(0).source, source) << text;
    EXPECT_EQ(all.at(0).target, target) << text;
  };
  check("nhwc", "", "NHWC", "");
  check("[n,h,w,c]", "", "NHWC", "");
  check("nhwc->nchw", "", "NHWC", "NCHW");
  check("[n,h,w,c]->[n,c,h,w]", "", "NHWC", "NCHW");
  check("in(nhwc->nchw),info(nc)", "in", "NHWC", "NCHW");
  check("in([n,h,w,c]->[n,c,h,w])", "in", "NHWC", "NCHW");
  check("in[n,...,c]", "in", "N...C", "");
  check("n?hw", "", "N?HW", "");
  check("n*c", "", "N...C", "");
  EXPECT_EQ(parse_layouts("--layout", "a(nc),b(nchw)").at(1).name, "b");
  for (const auto* text : {"n1", "nn", "a(n;c)", "nchw,,nc"})
    EXPECT_THROW(parse_layouts("--layout", text), Error) << text;
}

TEST(Offsets, AreTwoNumbers) {
  EXPECT_EQ(parse_offsets("(3,4)"), (std::pair<std::int64_t, std::int64_t>(3, 4)));
  for (const auto* text : {"(-1,2)", "(1)", "1,2", "(a,b)", "(1.5,2)", "(1e30,2)"})
    EXPECT_EQ(question([&] { parse_offsets(text); }), 18) << text;
}

TEST(Faq, ErrorsHaveTheNumberOfTheirKind) {
  const auto of = [](FileProblem problem) {
    return question_of(ReadError(ErrorCode::bad_file, "x", problem));
  };
  EXPECT_EQ(of(FileProblem::no_layers), 7);
  EXPECT_EQ(of(FileProblem::input_dims), 8);
  EXPECT_EQ(of(FileProblem::caffe_text), 11);
  EXPECT_EQ(of(FileProblem::no_caffe_text), 20);
  EXPECT_EQ(of(FileProblem::caffe_layer), 38);
  EXPECT_EQ(of(FileProblem::tensorflow), 43);
  EXPECT_EQ(of(FileProblem::value_of_input), 59);
  EXPECT_EQ(of(FileProblem::cycle), 97);
  EXPECT_EQ(of(FileProblem::caffe_weights), 103);
  EXPECT_EQ(of(FileProblem::other), 0);
  EXPECT_EQ(question_of(Error(ErrorCode::bad_file, "x")), 0);
  EXPECT_EQ(question_of(Error(ErrorCode::unsupported, "x")), 45);
  EXPECT_EQ(question_of(FaqError(ErrorCode::bad_file, 22, "x")), 22);
}

}  // namespace
}  // namespace lamina
