/// Element-wise kernels: every broadcast and layout, chains, epilogues on pieces.
#include "kernels/native/stages/program.h"
#include "tests/kernels/native_offers.h"

namespace lamina::testing {
namespace {

TEST(Elementwise, select) {
  std::uint64_t seed = 10;
  for (const std::string t : {"f32", "f16", "f64", "i64", "i32", "i8", "u8", "boolean"})
    for (const std::string c : {"[3,1,7]", "[7]", "[]", "[2,3,5,7]"})
      for (const std::string b : {"[2,3,5,7]", "[5,1]", "[1]"})
        check_all_offers(
            parse(fmt::format("graph (c: boolean{0}, a: {1}[2,3,5,7], b: {1}{2}) -> (y) {{\n y = "
                              "Select(c, a, b)\n}}\n",
                              c, t, b)),
            ++seed);
}

/// Axes of which each operand has some: all combinations.
TEST(Elementwise, broadcasts_over_every_combination_of_axes) {
  std::uint64_t seed = 100;
  const Dims sizes{2, 3, 5, 4, 7};
  for (std::size_t rank = 1; rank <= 5; ++rank) {
    const unsigned all = (1u << rank) - 1;
    for (unsigned a = 0; a <= all; ++a)
      for (unsigned b = 0; b <= all; ++b) {
        if ((a | b) != all || (rank == 5 && (a * 7 + b) % 5 != 0)) continue;
        Dims x, z;
        for (std::size_t i = 0; i < rank; ++i) {
          x.push_back(a >> i & 1 ? sizes[i] : 1);
          z.push_back(b >> i & 1 ? sizes[i] : 1);
        }
        check_all_offers(
            parse(fmt::format(
                "graph (x: f32{}, z: f32{}) -> (y) {{\n y = Elementwise(x, z) {{\n body graph (x: f32{}, z: "
                "f32{}) "
                "-> (r) {{\n s = Sigmoid(x)\n m = Subtract(s, z)\n r = Multiply(m, s)\n }}\n }}\n}}\n",
                dims_text(x), dims_text(z), dims_text(x), dims_text(z))),
            ++seed);
      }
  }
}

/// What models have: values per channel, per pixel, per row, whole tensors.
TEST(Elementwise, parameters_that_are_computed) {
  std::uint64_t seed = 290;
  for (const std::string node : {"Swish(x, a)", "Selu(x, a, a)", "HardSigmoid(x, a, a)", "PRelu(x, a)"})
    for (const std::string shape : {"[2,3,5]", "[2,3,4,17]"})
      check_all_offers(parse("graph (x: f32" + shape + ", a: f32[1]) -> (y) {\n y = " + node + "\n}\n"),
                       ++seed);
}

TEST(Elementwise, parameters_with_more_axes_than_the_tensor) {
  std::uint64_t seed = 300;
  for (const std::string type : {"f32[]", "f32[3]", "f32[2,3]", "f64[2,3]", "f16[2,3]"}) {
    const auto number = "const " + type.substr(0, type.find('[')) + "[1,1,1] {0.5}";
    for (const std::string node : {"Swish(x, a)", "Selu(x, a, a)", "HardSigmoid(x, a, a)"})
      check_all_offers(parse("graph (x: " + type + ") -> (y) {\n a = " + number + "\n y = " + node + "\n}\n"),
                       ++seed);
  }
}

TEST(Elementwise, channels_and_sizes) {
  std::uint64_t seed = 500;
  for (const int c : {1, 3, 4, 5, 7, 8, 9, 16, 17, 64})
    for (const auto& [h, w] : {std::pair{1, 1}, {7, 7}, {3, 57}, {33, 1}, {23, 31}}) {
      const std::string whole = fmt::format("[2,{},{},{}]", c, h, w);
      check_all_offers(
          parse(fmt::format(
              "graph (x: f32{0}, z: f32{0}, p: f32[2,1,{2},{3}], q: f32[1,{1},1,{3}]) -> (y) {{\n"
              " y = Elementwise(x, z, p, q) {{\n"
              " body graph (x: f32{0}, z: f32{0}, p: f32[2,1,{2},{3}], q: f32[1,{1},1,{3}]) -> (r) {{\n"
              "  s = const f32[{1},1,1] seed(1)\n  k = const f32[{1}] seed(2)\n  f = const "
              "f32[1,{1},{2},{3}] seed(3)\n"
              "  t = PRelu(x, k)\n  u = Multiply(t, s)\n  v = Add(u, z)\n  a = Tanh(p)\n  b = Multiply(v, "
              "a)\n"
              "  d = Subtract(f, b)\n  e = Exp(q)\n  r = Add(d, e)\n }}\n }}\n}}\n",
              whole, c, h, w)),
          ++seed);
    }
}

TEST(Elementwise, sizes_around_vectors_and_pieces) {
  std::uint64_t seed = 900;
  for (const int n :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 57, 63, 64, 65, 127, 255, 1023, 1024, 1025, 2049, 70001})
    check_all_offers(
        parse(fmt::format(
            "graph (x: f32[{0}], z: f32[{0}]) -> (y) {{\n y = Elementwise(x, z) {{\n body graph (x: "
            "f32[{0}], z: "
            "f32[{0}]) -> (r) {{\n a = Exp(x)\n b = Less(a, z)\n r = Select(b, a, z)\n }}\n }}\n}}\n",
            n)),
        ++seed);
  check_all_offers(parse("graph (x: f32[0,3]) -> (y) {\n y = Exp(x)\n}\n"), 1);
  check_all_offers(parse("graph (x: f32[]) -> (y) {\n y = Exp(x)\n}\n"), 1);
  check_all_offers(parse("graph (x: f32[8,96,96,5], z: f32[96,1,5]) -> (y) {\n y = Multiply(x, z)\n}\n"), 1);
}

TEST(Elementwise, chains_of_thirty_stages) {
  SplitMix random(11);
  for (int round = 0; round < 20; ++round) {
    std::string body;
    std::vector<std::string> values{"x", "z", "c"};
    const char* const unary[] = {"Tanh", "Sigmoid", "Abs", "Sin", "Relu", "HSigmoid"};
    const char* const binary[] = {"Add", "Multiply", "Subtract", "Maximum", "Minimum"};
    for (int i = 0; i < 30; ++i) {
      const auto pick = [&] {
        return values[random.below(2) ? values.size() - 1 : random.below(values.size())];
      };
      const std::string name = fmt::format("t{}", i);
      if (random.below(2))
        body += fmt::format("  {} = {}({})\n", name, unary[random.below(std::size(unary))], pick());
      else
        body += fmt::format("  {}b = {}({}, {})\n  {} = Tanh({}b)\n", name,
                            binary[random.below(std::size(binary))], pick(), pick(), name, name);
      values.push_back(name);
    }
    body += fmt::format("  w = Add({}, x)\n  r = Add(w, z)\n", values.back());
    SCOPED_TRACE(body);
    check_all_offers(
        parse(fmt::format(
            "graph (x: f32[2,5,6,7], z: f32[5,1,7]) -> (y) {{\n y = Elementwise(x, z) {{\n body graph (x: "
            "f32[2,5,6,7], z: f32[5,1,7]) -> (r) {{\n  c = const f32[5,1,1] seed(4)\n{} }}\n }}\n}}\n",
            body)),
        1000 + static_cast<std::uint64_t>(round));
  }
}

/// More values alive at once than fit into long pieces.
TEST(Elementwise, wide_bodies) {
  std::string body, sum = "x";
  for (int i = 0; i < 60; ++i)
    body += fmt::format("  k{0} = const f32[] {{{1}}}\n  t{0} = Multiply(x, k{0})\n", i, 0.01 * i);
  for (int i = 0; i < 60; ++i) {
    body += fmt::format("  s{} = Add({}, t{})\n", i, sum, i);
    sum = fmt::format("s{}", i);
  }
  body += "  r = Negative(" + sum + ")\n";
  // 60 numbers and one tensor: within the limit of views.
  check_all_offers(
      parse("graph (x: f32[3,700]) -> (y) {\n y = Elementwise(x) {\n body graph (x: f32[3,700]) -> (r) {\n" +
            body + " }\n }\n}\n"),
      1);
}

TEST(Elementwise, results_that_are_an_operand_or_a_number) {
  for (const std::string body : {"r = Convert(x) destination_type=f32", "r = Abs(c)", "r = Add(c, c)"})
    check_all_offers(
        parse("graph (x: f32[2,3,4], c: f32[2,3,1]) -> (y) {\n y = Elementwise(x, c) {\n body graph (x: "
              "f32[2,3,4], c: f32[2,3,1]) -> (r) {\n " +
              body + "\n }\n }\n}\n"),
        1);
}

TEST(Elementwise, types_change_within_a_chain) {
  for (const std::string to : {"f32", "f16", "u8", "i64"})
    check_all_offers(parse("graph (x: i32[1,40,57], z: i32[57]) -> (y) {\n y = Elementwise(x, z) {\n body "
                           "graph (x: i32[1,40,57], z: i32[57]) -> (r) {\n"
                           "  e = Equal(x, z)\n  f = Convert(e) destination_type=f32\n  k = const f32[40,1] "
                           "seed(1)\n  m = Multiply(f, k)\n"
                           "  n = LogicalNot(e)\n  h = Convert(x) destination_type=f32\n  s = Select(n, m, "
                           "h)\n  r = Convert(s) destination_type=" +
                           to + "\n }\n }\n}\n"),
                     3);
}

/// Operands and results that are slices of the channels of wider tensors.
TEST(Elementwise, slices_of_wider_channels) {
  for (const std::int64_t c : {1, 3, 16, 70, 1100}) {
    const auto text = fmt::format(
        "graph (x: f32[2,{0},3,5], z: f32[2,{0},3,5]) -> (y) {{\n y = Elementwise(x, z) {{\n body graph (x: "
        "f32[2,{0},3,5], z: f32[2,{0},3,5]) -> (r) {{\n s = const f32[{0},1,1] seed(1)\n a = Multiply(x, "
        "s)\n "
        "r = Add(a, z)\n }}\n }}\n}}\n",
        c);
    const auto g = parse(text);
    const auto inputs = random_inputs(g, 3);
    const auto wanted = interpret(g, inputs).at(0);
    for (auto& offer : ask_kernels(NodeView(g, g.order().at(0))).offers) {
      if (offer.outputs[0] != Layout::channels_last || !offer.label.starts_with("native")) continue;
      EXPECT_EQ(offer.wide_inputs, (std::vector<std::size_t>{0, 1}));
      EXPECT_EQ(offer.wide_outputs, (std::vector<std::size_t>{0}));
      const std::int64_t pixels = 30, in_row = c + 5, out_row = c + 3;
      const auto x = lamina::laid_out(inputs[0], Layout::channels_last);
      const auto z = lamina::laid_out(inputs[1], Layout::channels_last);
      std::vector<float> wide(static_cast<std::size_t>(pixels * in_row), 9),
          out(static_cast<std::size_t>(pixels * out_row), 7);
      const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
      for (std::int64_t p = 0; p < pixels; ++p)
        for (std::int64_t i = 0; i < c; ++i) wide[at(p * in_row + i)] = x.data<float>()[at(p * c + i)];
      ModelWeights weights;
      MakeContext context{weights, {in_row, 0}, {out_row}};
      const auto code = offer.make(context);
      const auto step = code->step();
      const void* in[] = {wide.data(), z.raw()};
      void* to[] = {out.data()};
      step->bind({in, to, nullptr});
      step->run();
      Tensor got(ElementType::f32, wanted.shape());
      for (std::int64_t p = 0; p < pixels; ++p)
        for (std::int64_t i = 0; i < out_row; ++i)
          if (i < c)
            got.data<float>()[at(p * c + i)] = out[at(p * out_row + i)];
          else
            ASSERT_EQ(out[at(p * out_row + i)], 7) << "beside the slice";
      const auto plain = plain_of(got, ElementType::f32, wanted.shape(), Layout::channels_last);
      expect_close(plain, wanted, fmt::format("{} channels", c));
    }
  }
}

/// An epilogue on pieces of any length at any place.
TEST(Elementwise, epilogues_run_on_pieces) {
  const auto g = parse(
      "graph (x: f32[2,3,9,7], z: f32[2,5,9,7], p: f32[2,1,9,1]) -> (y) {\n w = const f32[5,3,1,1] seed(1)\n"
      " y = Convolution(x, w, _, _, _, z, p) {\n body graph (a: f32[2,5,9,7], z: f32[2,5,9,7], p: "
      "f32[2,1,9,1]) -> (r) {\n"
      "  s = const f32[5,1,1] seed(2)\n  k = const f32[5] seed(3)\n  b = PRelu(a, k)\n  c = Multiply(b, s)\n "
      " d = Add(c, z)\n"
      "  e = Sigmoid(p)\n  f = Multiply(d, e)\n  h = Tanh(f)\n  r = Multiply(f, h)\n }\n }\n}\n");
  const auto inputs = random_inputs(g, 5);
  auto bare = g;
  const auto node = g.order().at(0);
  const auto wanted = interpret(g, inputs).at(0);
  bare =
      parse("graph (x: f32[2,3,9,7]) -> (y) {\n w = const f32[5,3,1,1] seed(1)\n y = Convolution(x, w)\n}\n");
  const auto base = interpret(bare, {inputs[0]}).at(0);
  SplitMix random(9);
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    std::string why;
    const NodeView view(g, node);
    const auto program = StageProgram::of_epilogue(view, layout, why);
    ASSERT_TRUE(program) << why;
    EXPECT_FALSE(program->empty());
    Offer offer;
    program->add_to(offer, host());
    ASSERT_EQ(offer.inputs.size(), 7u);
    EXPECT_GT(offer.cost.us(), 0);
    std::vector<Tensor> laid_out(7);
    laid_out[5] = lamina::laid_out(inputs[1], offer.inputs[5]);
    laid_out[6] = lamina::laid_out(inputs[2], offer.inputs[6]);
    std::vector<const void*> in(7, nullptr);
    for (const std::size_t i : {5, 6}) in[i] = laid_out[i].raw();
    for (int round = 0; round < 60; ++round) {
      auto tile = lamina::laid_out(base, layout).clone();
      StageRun run(*program, in.data());
      const auto total = static_cast<std::int64_t>(tile.size());
      std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
      for (std::int64_t at = 0; at < total;) {
        const auto n = std::min<std::int64_t>(
            total - at, 1 + static_cast<std::int64_t>(random.below(round < 30 ? 40 : 700)));
        pieces.emplace_back(at, n);
        at += n;
      }
      if (round % 2) std::reverse(pieces.begin(), pieces.end());
      for (const auto& [at, n] : pieces)
        run(&tile.data<float>()[static_cast<std::size_t>(at)],
            &tile.data<float>()[static_cast<std::size_t>(at)], at, n);
      expect_close(plain_of(tile, tile.element_type(), tile.shape(), layout), wanted,
                   fmt::format("{} round {}", name_of(layout), round));
    }
  }
}

TEST(Elementwise, programs_say_what_they_read_and_overwrite) {
  const auto g = parse(
      "graph (x: f32[1,3,5,5], z: f32[3,1,1], i: i32[1,3,5,5]) -> (y) {\n k = const f32[1,3,1,1] seed(1)\n"
      " y = Elementwise(x, z, i, k) {\n body graph (x: f32[1,3,5,5], z: f32[3,1,1], i: i32[1,3,5,5], k: "
      "f32[1,3,1,1]) -> (r) {\n"
      "  f = Convert(i) destination_type=f32\n  a = Add(x, z)\n  b = Multiply(a, k)\n  r = Add(b, f)\n }\n "
      "}\n}\n");
  const NodeView view(g, g.order().at(0));
  std::string why;
  const auto program = StageProgram::of_elementwise(view, Layout::channels_last, why);
  ASSERT_TRUE(program) << why;
  EXPECT_EQ(program->may_overwrite(), (std::vector<std::size_t>{0, 2}));
  Offer offer;
  program->add_to(offer, host());
  EXPECT_EQ(offer.consumed, (std::vector<std::size_t>{3}));
  EXPECT_EQ(offer.inputs, (std::vector<Layout>{Layout::channels_last, Layout::plain, Layout::channels_last,
                                               Layout::channels_last}));
}

TEST(Elementwise, refusals_are_sentences) {
  const auto refusal = [](const std::string& text) {
    const auto g = parse(text);
    std::string found;
    for (const auto& r : ask_kernels(NodeView(g, g.order().at(0))).refusals)
      if (r.kernel == "native") found += r.reason;
    return found;
  };
  EXPECT_EQ(refusal("graph (x: u4[8]) -> (y) {\n y = Convert(x) destination_type=f32\n}\n"),
            "no loops for u4");
  EXPECT_EQ(
      refusal("graph (x: f32[2,4], s: f32[2,2]) -> (y) {\n y = Quantize(x, s) axis=1 block_size=2\n}\n"),
      "blocked scales");
}

}  // namespace
}  // namespace lamina::testing
