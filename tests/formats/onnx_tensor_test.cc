// Tensors of ONNX files: every encoding, data in other files, sparse ones, and broken ones.
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "graph/infer.h"
#include "lamina/error.h"
#include "ops/eval.h"
#include "tests/support/onnx_model.h"

namespace lamina::testing {
namespace {

using protozero::pbf_writer;

/// A TensorProto "t" of the dims and DataType, filled by `fill`.
template <class F>
std::string tensor_bytes(const std::vector<std::int64_t>& dims, int type, F fill) {
  std::string bytes;
  pbf_writer out(bytes);
  for (auto d : dims) out.add_int64(1, d);
  out.add_int32(2, type);
  out.add_string(8, "t");
  fill(out);
  return bytes;
}

OnnxGraph graph_of(const std::string& tensor) { return OnnxGraph().raw_initializer(tensor).output("t"); }

Tensor read_tensor(const std::string& tensor) {
  const auto m = read_onnx_bytes(onnx_model(graph_of(tensor)));
  const auto* constant = m.graph.constant(m.graph.results().at(0).value);
  return constant ? *constant : Tensor();
}

std::string refused(const std::string& tensor) { return onnx_refusal(onnx_model(graph_of(tensor))); }

TEST(OnnxTensor, TypedFields) {
  const auto floats32 = tensor_bytes({2}, 1, [](pbf_writer& out) {
    const float v[] = {1.5f, -2};
    out.add_packed_float(4, v, v + 2);
  });
  EXPECT_EQ(to_doubles(read_tensor(floats32)), (std::vector<double>{1.5, -2}));
  const auto unpacked = tensor_bytes({2}, 1, [](pbf_writer& out) {
    out.add_float(4, 1.5f);
    out.add_float(4, -2);
  });
  EXPECT_EQ(to_doubles(read_tensor(unpacked)), (std::vector<double>{1.5, -2}));
  const auto doubles = tensor_bytes({1}, 11, [](pbf_writer& out) { out.add_double(10, 0.1); });
  EXPECT_EQ(to_doubles(read_tensor(doubles)), std::vector<double>{0.1});
  const auto longs = tensor_bytes({2}, 7, [](pbf_writer& out) {
    out.add_int64(7, -5);
    out.add_int64(7, std::int64_t{1} << 40);
  });
  EXPECT_EQ(to_ints(read_tensor(longs)), (Ints{-5, std::int64_t{1} << 40}));
}

TEST(OnnxTensor, SmallTypesInInt32Data) {
  for (const auto type :
       {ElementType::i32, ElementType::i16, ElementType::i8, ElementType::u16, ElementType::u8}) {
    const bool negative = is_signed(type);
    const auto bytes = tensor_bytes({3}, onnx_type(type), [&](pbf_writer& out) {
      out.add_int32(5, 7);
      out.add_int32(5, negative ? -3 : 3);
      out.add_int32(5, 120);
    });
    const auto t = read_tensor(bytes);
    EXPECT_EQ(t.element_type(), type);
    EXPECT_EQ(to_ints(t), (Ints{7, negative ? -3 : 3, 120})) << name_of(type);
  }
  const auto half = tensor_bytes({1}, 10, [](pbf_writer& out) { out.add_int32(5, 0x3e00); });
  EXPECT_EQ(to_doubles(read_tensor(half)), std::vector<double>{1.5});
  const auto brain = tensor_bytes({1}, 16, [](pbf_writer& out) { out.add_int32(5, 0x3fc0); });
  EXPECT_EQ(to_doubles(read_tensor(brain)), std::vector<double>{1.5});
  const auto boolean = tensor_bytes({3}, 9, [](pbf_writer& out) {
    out.add_int32(5, 0);
    out.add_int32(5, 17);
    out.add_int32(5, 256);
  });
  EXPECT_EQ(to_ints(read_tensor(boolean)), (Ints{0, 1, 1}));
  const auto unsigned32 = tensor_bytes({1}, 12, [](pbf_writer& out) { out.add_uint64(11, 4000000000u); });
  EXPECT_EQ(to_ints(read_tensor(unsigned32)), Ints{4000000000});
  const auto nibbles = tensor_bytes({3}, 22, [](pbf_writer& out) {
    out.add_int32(5, 0xf7);
    out.add_int32(5, 0x08);
  });
  EXPECT_EQ(to_ints(read_tensor(nibbles)), (Ints{7, -1, -8}));
}

TEST(OnnxTensor, RawDataMayLieAnywhere) {
  const auto t = Tensor::of<std::int64_t>({2}, {1, -1});
  for (int shift = 0; shift < 8; ++shift) {
    OnnxGraph g;
    g.initializer(std::string(static_cast<std::size_t>(shift) + 1, 'n'), t);
    g.raw_initializer(tensor_proto(t, "t")).output("t");
    const auto m = read_onnx_bytes(onnx_model(g));
    EXPECT_EQ(to_ints(*m.graph.constant(m.graph.results()[0].value)), (Ints{1, -1}));
  }
}

TEST(OnnxTensor, BooleanBytesBecomeZeroOrOne) {
  const auto bytes = tensor_bytes({3}, 9, [](pbf_writer& out) { out.add_bytes(9, "\x00\x01\xff", 3); });
  const auto t = read_tensor(bytes);
  EXPECT_EQ(std::to_integer<int>(t.raw()[2]), 1);
}

TEST(OnnxTensor, BrokenOnes) {
  EXPECT_EQ(refused(tensor_bytes({3}, 1, [](pbf_writer& out) { out.add_bytes(9, "12345678", 8); })),
            "tensor \"t\": has 8 bytes of data, its shape [3] of f32 wants 12");
  EXPECT_EQ(refused(tensor_bytes({3}, 7, [](pbf_writer& out) { out.add_int64(7, 1); })),
            "tensor \"t\": has 1 values in field 7, its shape wants 3");
  EXPECT_EQ(refused(tensor_bytes({-1}, 1, [](pbf_writer&) {})),
            "tensor \"t\": shape has the dimension -1, wanted 0 or more");
  const auto huge = refused(tensor_bytes({1 << 30, 1 << 30, 1 << 30}, 1, [](pbf_writer&) {}));
  EXPECT_TRUE(huge.starts_with("tensor \"t\": ")) << huge;
  const auto large = refused(tensor_bytes({1 << 30}, 1, [](pbf_writer&) {}));
  EXPECT_EQ(large, "tensor \"t\": has 0 values in field 4, its shape wants 1073741824");
}

TEST(OnnxTensor, TypesThatAreNotSupported) {
  const auto m = read_onnx_bytes(
      onnx_model(graph_of(tensor_bytes({1}, 27, [](pbf_writer& out) { out.add_bytes(9, "a", 1); }))));
  ASSERT_EQ(m.unsupported.size(), 1u);
  EXPECT_EQ(m.unsupported[0].nodes[0], "t: tensor \"t\": elements of type float6e2m3 are not supported");
}

void add_entry(pbf_writer& out, const std::string& key, const std::string& value) {
  pbf_writer entry(out, 13);
  entry.add_string(1, key);
  entry.add_string(2, value);
}

std::string external(const std::string& location, const std::string& offset, const std::string& length) {
  return tensor_bytes({2}, 1, [&](pbf_writer& out) {
    add_entry(out, "location", location);
    if (!offset.empty()) add_entry(out, "offset", offset);
    if (!length.empty()) add_entry(out, "length", length);
    out.add_int32(14, 1);
  });
}

TEST(OnnxTensor, ExternalData) {
  const TemporaryFolder folder;
  const float data[] = {9, 1, 2};
  write_file(folder.file("w.bin"), {reinterpret_cast<const char*>(data), sizeof data});
  const auto read = [&](const std::string& tensor) {
    write_file(folder.file("m.onnx"), onnx_model(graph_of(tensor)));
    const auto m = read_onnx(folder.file("m.onnx"));
    return to_doubles(*m.graph.constant(m.graph.results()[0].value));
  };
  const auto refused_because = [&](const std::string& tensor) {
    try {
      read(tensor);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      return std::string(e.what()).substr(folder.file("m.onnx: tensor \"t\": ").size());
    }
    return std::string();
  };
  EXPECT_EQ(read(external("w.bin", "4", "8")), (std::vector<double>{1, 2}));
  EXPECT_EQ(read(external("./w.bin", "", "")), (std::vector<double>{9, 1}));
  EXPECT_EQ(refused_because(external("w.bin", "8", "8")),
            "wants 8 bytes at offset 8 of \"w.bin\", which has 12");
  EXPECT_EQ(refused_because(external("w.bin", "18446744073709551615", "8")),
            "wants 8 bytes at offset 18446744073709551615 of \"w.bin\", which has 12");
  EXPECT_EQ(refused_because(external("w.bin", "", "12")), "has 12 bytes of external data, its shape wants 8");
  EXPECT_EQ(refused_because(external("w.bin", "-4", "")), "has the external offset \"-4\", wanted a number");
  for (const auto* outside : {"../w.bin", "a/../../w.bin", "/etc/passwd", ""}) {
    const auto text = refused_because(external(outside, "", ""));
    EXPECT_NE(text.find("wanted a file in the model's folder"), std::string::npos) << text;
  }
  EXPECT_NE(refused_because(external("none.bin", "", "")).find("no such file"), std::string::npos);
}

std::string sparse(const std::vector<std::int64_t>& dims, const Tensor& data, const Tensor& indices) {
  std::string bytes;
  pbf_writer out(bytes);
  out.add_message(1, tensor_proto(data, "t"));
  out.add_message(2, tensor_proto(indices, ""));
  for (auto d : dims) out.add_int64(3, d);
  return bytes;
}

TEST(OnnxTensor, SparseOnesAreMadeDense) {
  const auto read = [](const std::string& bytes) {
    const auto m = read_onnx_bytes(onnx_model(OnnxGraph().sparse_initializer(bytes).output("t")));
    return to_doubles(*m.graph.constant(m.graph.results()[0].value));
  };
  EXPECT_EQ(read(sparse({2, 2}, floats({2}, {5, 6}), integers({2}, {1, 2}))),
            (std::vector<double>{0, 5, 6, 0}));
  EXPECT_EQ(read(sparse({2, 2}, floats({1}, {5}), integers({1, 2}, {1, 0}))),
            (std::vector<double>{0, 0, 5, 0}));
  const auto text = onnx_refusal(onnx_model(
      OnnxGraph().sparse_initializer(sparse({2}, floats({1}, {5}), integers({1}, {2}))).output("t")));
  EXPECT_EQ(text, "tensor \"t\": has the index 2 of 2 elements");
}

}  // namespace
}  // namespace lamina::testing
