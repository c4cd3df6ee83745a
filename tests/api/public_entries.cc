#include "tests/api/public_entries.h"

#include "lamina/check.h"
#include "lamina/draw.h"
#include "lamina/listings.h"
#include "lamina/optimize.h"
#include "lamina/preprocess.h"
#include "lamina/quantize.h"
#include "lamina/reference.h"

namespace lamina::testing {

const std::map<std::string, std::function<void(Objects&)>>& entries() {
  static const std::map<std::string, std::function<void(Objects&)>> all{
      {"lamina::Model::files[abi:cxx11]() const", [](Objects& o) { (void)o.model.files(); }},
      {"lamina::Benchmark::Benchmark(lamina::CompiledModel const&, std::vector<lamina::InputGroup, "
       "std::allocator<lamina::InputGroup> >, lamina::LoadTimes const&)",
       [](Objects& o) { Benchmark(o.compiled, {}); }},
      {"lamina::Benchmark::measure(lamina::BenchmarkOptions const&)",
       [](Objects& o) { (void)o.benchmark.measure({.iterations = 1}); }},
      {"lamina::Benchmark::warm_up(std::stop_token const&)", [](Objects& o) { (void)o.benchmark.warm_up(); }},
      {"lamina::BenchmarkReport::json[abi:cxx11]() const", [](Objects&) { (void)BenchmarkReport().json(); }},
      {"lamina::benchmark(lamina::CompiledModel const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::BenchmarkOptions const&)",
       [](Objects& o) { (void)benchmark(o.compiled, {}, {.iterations = 1}); }},
      {"lamina::benchmark(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::Options const&, lamina::BenchmarkOptions const&, "
       "lamina::ReadOptions const&)",
       [](Objects&) { (void)benchmark("none.onnx"); }},
      {"lamina::tuned(lamina::Model const&, lamina::Options const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, std::function<void "
       "(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)> const&)",
       [](Objects& o) { (void)tuned(o.model, {}, {}); }},
      {"lamina::OptimizeOptions::set(std::basic_string_view<char, std::char_traits<char> >, "
       "std::basic_string_view<char, std::char_traits<char> >)",
       [](Objects&) { OptimizeOptions().set("output", "a"); }},
      {"lamina::OptimizeReport::json[abi:cxx11]() const", [](Objects&) { (void)OptimizeReport().json(); }},
      {"lamina::CheckReport::faults() const", [](Objects&) { (void)CheckReport().faults(); }},
      {"lamina::CheckReport::json[abi:cxx11]() const", [](Objects&) { (void)CheckReport().json(); }},
      {"lamina::CheckReport::lines[abi:cxx11](bool) const", [](Objects&) { (void)CheckReport().lines(); }},
      {"lamina::NoiseReport::html[abi:cxx11]() const", [](Objects&) { (void)NoiseReport().html(); }},
      {"lamina::NoiseReport::json[abi:cxx11]() const", [](Objects&) { (void)NoiseReport().json(); }},
      {"lamina::NoiseReport::lines[abi:cxx11]() const", [](Objects&) { (void)NoiseReport().lines(); }},
      {"lamina::check(lamina::CompiledModel const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::CheckOptions const&)",
       [](Objects& o) {
         (void)check(o.compiled, {o.tensor, o.tensor});
       }},
      {"lamina::check(lamina::Model const&, lamina::Options const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::CheckOptions const&)",
       [](Objects& o) {
         (void)check(o.model, {}, {o.tensor, o.tensor});
       }},
      {"lamina::check_extensions(std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > > > const&, lamina::CheckOptions const&)",
       [](Objects&) { (void)check_extensions({}); }},
      {"lamina::compare_quantized(lamina::Model const&, lamina::Model const&, lamina::Samples const&, "
       "lamina::NoiseOptions const&)",
       [](Objects& o) { (void)compare_quantized(o.model, o.model, Samples()); }},
      {"lamina::compare_quantized(lamina::Model const&, lamina::Model const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::NoiseOptions const&)",
       [](Objects& o) { (void)compare_quantized(o.model, o.model, std::vector<Tensor>()); }},
      {"lamina::QuantizeReport::json[abi:cxx11]() const", [](Objects&) { (void)QuantizeReport().json(); }},
      {"lamina::QuantizeReport::html[abi:cxx11]() const", [](Objects&) { (void)QuantizeReport().html(); }},
      {"lamina::QuantizeReport::lines[abi:cxx11]() const", [](Objects&) { (void)QuantizeReport().lines(); }},
      {"lamina::optimize(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, "
       "std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, "
       "lamina::OptimizeOptions const&)",
       [](Objects&) { (void)optimize("none.onnx", "none.xml"); }},
      {"lamina::optimize(lamina::Model const&, std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, lamina::OptimizeOptions const&)",
       [](Objects& o) { (void)optimize(o.model, "none.xml"); }},
      {"lamina::quantize(lamina::Model const&, lamina::CalibrationData const&, "
       "std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, lamina::QuantizeOptions const&)",
       [](Objects& o) { (void)quantize(o.model, CalibrationData(), "none.onnx"); }},
      {"lamina::quantize(lamina::Model const&, std::function<std::optional<std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > > ()> const&, "
       "std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, lamina::QuantizeOptions const&)",
       [](Objects& o) { (void)quantize(o.model, NextSample(), "none.onnx"); }},
      {"lamina::CompiledModel::CompiledModel(lamina::Model const&, lamina::Options const&)",
       [](Objects& o) { CompiledModel{o.model}; }},
      {"lamina::CompiledModel::create_request() const",
       [](Objects& o) { (void)o.compiled.create_request(); }},
      {"lamina::CompiledModel::find_input(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.compiled.find_input("a"); }},
      {"lamina::CompiledModel::find_output(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.compiled.find_output("a"); }},
      {"lamina::CompiledModel::fusions() const", [](Objects& o) { (void)o.compiled.fusions(); }},
      {"lamina::CompiledModel::inputs() const", [](Objects& o) { (void)o.compiled.inputs(); }},
      {"lamina::CompiledModel::operator()(lamina::Tensor const&) const",
       [](Objects& o) { (void)o.compiled(o.tensor); }},
      {"lamina::CompiledModel::operator()(std::vector<lamina::Tensor, std::allocator<lamina::Tensor> > "
       "const&) const",
       [](Objects& o) {
         (void)o.compiled({o.tensor, o.tensor});
       }},
      {"lamina::CompiledModel::output_ports(std::vector<std::vector<long, std::allocator<long> >, "
       "std::allocator<std::vector<long, std::allocator<long> > > > const&) const",
       [](Objects& o) {
         (void)o.compiled.output_ports({{1, 4}, {1, 4}});
       }},
      {"lamina::CompiledModel::plan(std::vector<std::vector<long, std::allocator<long> >, "
       "std::allocator<std::vector<long, std::allocator<long> > > > const&, std::stop_token const&) const",
       [](Objects& o) {
         o.compiled.plan({{1, 4}, {1, 4}});
       }},
      {"lamina::CompiledModel::plans() const", [](Objects& o) { (void)o.compiled.plans(); }},
      {"lamina::Model::compiled_for() const", [](Objects& o) { (void)o.model.compiled_for(); }},
      {"lamina::Model::is_compiled() const", [](Objects& o) { (void)o.model.is_compiled(); }},
      {"lamina::Model::output_ports(std::map<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> >, std::vector<lamina::Dimension, std::allocator<lamina::Dimension> >, "
       "std::less<void>, std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const, std::vector<lamina::Dimension, std::allocator<lamina::Dimension> > > > "
       "> const&) const",
       [](Objects& o) { (void)o.model.output_ports({}); }},
      {"lamina::precision_used[abi:cxx11](lamina::Request const&)",
       [](Objects& o) { (void)precision_used(o.request); }},
      {"lamina::preprocessed(lamina::Model const&, lamina::Preprocessing const&)",
       [](Objects& o) { (void)preprocessed(o.model, {}); }},
      {"lamina::CompiledModel::outputs() const", [](Objects& o) { (void)o.compiled.outputs(); }},
      {"lamina::CompiledModel::streams() const", [](Objects& o) { (void)o.compiled.streams(); }},
      {"lamina::CompiledModel::optimal_requests() const",
       [](Objects& o) { (void)o.compiled.optimal_requests(); }},
      {"lamina::CompiledModel::properties() const", [](Objects& o) { (void)o.compiled.properties(); }},
      {"lamina::CompiledModel::property[abi:cxx11](std::basic_string_view<char, std::char_traits<char> >) "
       "const",
       [](Objects& o) { (void)o.compiled.property("NUM_STREAMS"); }},
      {"lamina::Request::start()", [](Objects& o) { o.request.start(); }},
      {"lamina::Request::wait()", [](Objects& o) { o.request.wait(); }},
      {"lamina::Request::wait_for(std::chrono::duration<long, std::ratio<1l, 1000000000l> >)",
       [](Objects& o) { o.request.wait_for(std::chrono::nanoseconds(0)); }},
      {"lamina::Request::set_callback(std::function<void (std::__exception_ptr::exception_ptr)>)",
       [](Objects& o) { o.request.set_callback({}); }},
      {"lamina::Request::set_profile(bool)", [](Objects& o) { o.request.set_profile(false); }},
      {"lamina::Request::counters() const", [](Objects& o) { (void)o.request.counters(); }},
      {"lamina::properties(lamina::Options const&)", [](Objects&) { (void)properties(); }},
      {"lamina::shutdown()", [](Objects&) { shutdown(); }},
      {"lamina::CompiledModel::save(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&) const",
       [](Objects& o) { o.compiled.save("/no/such/folder/x.lamina"); }},
      {"lamina::CompiledModel::threads() const", [](Objects& o) { (void)o.compiled.threads(); }},
      {"lamina::CompiledModel::variables() const", [](Objects& o) { (void)o.compiled.variables(); }},
      {"lamina::CompiledModel::weight_memory() const", [](Objects& o) { (void)o.compiled.weight_memory(); }},
      {"lamina::Model::Model(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, lamina::ReadOptions const&)",
       [](Objects&) { Model("no/such/model.onnx"); }},
      {"lamina::Model::find_input(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.model.find_input("a"); }},
      {"lamina::Model::find_output(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.model.find_output("a"); }},
      {"lamina::Model::format[abi:cxx11]() const", [](Objects& o) { (void)o.model.format(); }},
      {"lamina::Model::from_memory(lamina::ModelBytes const&, lamina::ReadOptions const&)",
       [](Objects&) { (void)Model::from_memory({.model = bytes_of("x")}); }},
      {"lamina::Model::inputs() const", [](Objects& o) { (void)o.model.inputs(); }},
      {"lamina::Model::metadata[abi:cxx11]() const", [](Objects& o) { (void)o.model.metadata(); }},
      {"lamina::Model::outputs() const", [](Objects& o) { (void)o.model.outputs(); }},
      {"lamina::Model::unsupported[abi:cxx11]() const", [](Objects& o) { (void)o.model.unsupported(); }},
      {"lamina::Model::variables() const", [](Objects& o) { (void)o.model.variables(); }},
      {"lamina::Model::warnings[abi:cxx11]() const", [](Objects& o) { (void)o.model.warnings(); }},
      {"lamina::Options::set(std::basic_string_view<char, std::char_traits<char> >, "
       "std::basic_string_view<char, std::char_traits<char> >)",
       [](Objects& o) { o.options.set("PERF_COUNT", "NO"); }},
      {"lamina::Request::layer_times() const", [](Objects& o) { (void)o.request.layer_times(); }},
      {"lamina::Request::memory() const", [](Objects& o) { (void)o.request.memory(); }},
      {"lamina::Request::take_output(std::basic_string_view<char, std::char_traits<char> >)",
       [](Objects& o) { (void)o.request.take_output("Add_2"); }},
      {"lamina::Request::take_output(unsigned long)", [](Objects& o) { (void)o.request.take_output(0); }},
      {"lamina::Request::output(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.request.output("Add_2"); }},
      {"lamina::Request::output(unsigned long) const", [](Objects& o) { (void)o.request.output(0); }},
      {"lamina::Request::reset_state()", [](Objects& o) { o.request.reset_state(); }},
      {"lamina::Request::run()", [](Objects& o) { o.request.run(); }},
      {"lamina::Request::run_for(std::chrono::duration<long, std::ratio<1l, 1000000000l> >)",
       [](Objects& o) { o.request.run_for(std::chrono::hours(1)); }},
      {"lamina::Request::set_input(std::basic_string_view<char, std::char_traits<char> >, lamina::Tensor)",
       [](Objects& o) { o.request.set_input("a", {}); }},
      {"lamina::Request::set_input(unsigned long, lamina::Tensor)",
       [](Objects& o) { o.request.set_input(0, {}); }},
      {"lamina::Request::set_output(std::basic_string_view<char, std::char_traits<char> >, lamina::Tensor)",
       [](Objects& o) { o.request.set_output("Add_2", {}); }},
      {"lamina::Request::set_output(unsigned long, lamina::Tensor)",
       [](Objects& o) { o.request.set_output(0, {}); }},
      {"lamina::Request::set_variable(std::basic_string_view<char, std::char_traits<char> >, "
       "lamina::Tensor "
       "const&)",
       [](Objects& o) { o.request.set_variable("v", {}); }},
      {"lamina::Request::variable(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.request.variable("v"); }},
      {"lamina::Tensor::Tensor(lamina::ElementType, std::vector<long, std::allocator<long> >)",
       [](Objects&) { Tensor(ElementType::f32, {1}); }},
      {"lamina::Tensor::Tensor(lamina::Tensor const&)",
       [](Objects& o) { const Tensor copy(o.tensor); }},  // NOLINT
      {"lamina::Tensor::check_view(lamina::ElementType) const",
       [](Objects& o) { (void)o.tensor.data<int>(); }},
      {"lamina::Tensor::clone() const", [](Objects& o) { (void)o.tensor.clone(); }},
      {"lamina::Tensor::copied(lamina::ElementType, std::vector<long, std::allocator<long> >, void const*, "
       "unsigned long)",
       [](Objects&) { (void)Tensor::scalar(1); }},
      {"lamina::Tensor::operator=(lamina::Tensor const&)",
       [](Objects& o) {
         Tensor other;
         other = o.tensor;
       }},
      {"lamina::Tensor::reshaped(std::vector<long, std::allocator<long> >) const",
       [](Objects& o) { (void)o.tensor.reshaped({8}); }},
      {"lamina::Tensor::share(lamina::ElementType, std::vector<long, std::allocator<long> >, "
       "std::shared_ptr<void const>, void const*)",
       [](Objects& o) { (void)Tensor::share(ElementType::f32, {1}, nullptr, o.tensor.raw()); }},
      {"lamina::Tensor::to_aligned() const", [](Objects& o) { (void)o.tensor.to_aligned(); }},
      {"lamina::Tensor::wrap(lamina::ElementType, std::vector<long, std::allocator<long> >, void const*)",
       [](Objects& o) { (void)Tensor::wrap({1}, std::as_const(o.tensor).data<float>().data()); }},
      {"lamina::Tensor::wrap(lamina::ElementType, std::vector<long, std::allocator<long> >, void*)",
       [](Objects& o) { (void)Tensor::wrap({1}, o.tensor.data<float>().data()); }},
      {"lamina::Tensor::wrap(lamina::ElementType, std::vector<long, std::allocator<long> >, void*, "
       "std::shared_ptr<void const>)",
       [](Objects& o) { (void)Tensor::wrap(ElementType::f32, {1}, o.tensor.raw(), nullptr); }},
      {"lamina::draw[abi:cxx11](lamina::CompiledModel const&, lamina::DrawOptions const&)",
       [](Objects& o) { (void)draw(o.compiled); }},
      {"lamina::draw[abi:cxx11](lamina::Model const&, lamina::Options const&, lamina::DrawOptions const&)",
       [](Objects& o) { (void)draw(o.model); }},
      {"lamina::describe_build[abi:cxx11]()", [](Objects&) { (void)describe_build(); }},
      {"lamina::describe_model[abi:cxx11](lamina::Model const&)",
       [](Objects& o) { (void)describe_model(o.model); }},
      {"lamina::list_cache(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&)",
       [](Objects&) { (void)list_cache("."); }},
      {"lamina::list_operators(std::vector<std::__cxx11::basic_string<char, "
       "std::char_traits<char>, std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, "
       "std::char_traits<char>, std::allocator<char> > > > const&)",
       [](Objects&) { (void)list_operators(); }},
      {"lamina::list_rules(std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > > > const&)",
       [](Objects&) { (void)list_rules(); }},
      {"lamina::list_settings(lamina::Options const&, std::__cxx11::basic_string<char, "
       "std::char_traits<char>, std::allocator<char> > const&)",
       [](Objects&) { (void)list_settings(); }},
      {"lamina::prune_cache(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, unsigned long)",
       [](Objects&) { (void)prune_cache("none", 0); }},
      {"lamina::verify_cache(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&)",
       [](Objects&) { (void)verify_cache("."); }},
      {"lamina::run_reference(lamina::Model const&, std::vector<lamina::Tensor, "
       "std::allocator<lamina::Tensor> > const&, lamina::ReferenceOptions const&)",
       [](Objects& o) { (void)run_reference(o.model, {}); }},
      {"lamina::explain(lamina::CompiledModel const&, lamina::ExplainOptions const&)",
       [](Objects& o) {
         (void)explain(o.compiled, {.shapes = {{2, 4}, {2, 4}}});
       }},
      {"lamina::explain(lamina::Model const&, lamina::Options const&, lamina::ExplainOptions const&)",
       [](Objects& o) {
         (void)explain(o.model, {}, {.shapes = {{2, 4}, {2, 4}}});
       }},
      {"lamina::Explanation::json[abi:cxx11](lamina::ExplainDocument const&) const",
       [](Objects& o) { (void)o.explanation.json(); }},
      {"lamina::Explanation::layers_named(std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.explanation.layers_named(o.explanation.layers[0].name); }},
      {"lamina::Explanation::plans[abi:cxx11]() const", [](Objects& o) { (void)o.explanation.plans(); }},
      {"lamina::Explanation::rewriting_page[abi:cxx11](std::function<void (std::basic_string_view<char, "
       "std::char_traits<char> >, double)> const&) const",
       [](Objects& o) { (void)o.explanation.rewriting_page(); }},
      {"lamina::Explanation::verdict() const", [](Objects& o) { (void)o.explanation.verdict(); }},
      {"lamina::Explanation::why(std::basic_string_view<char, std::char_traits<char> >, "
       "std::basic_string_view<char, std::char_traits<char> >) const",
       [](Objects& o) { (void)o.explanation.why("fuse-linear", o.explanation.layers[0].name); }},
      {"lamina::RuleAnswer::json[abi:cxx11]() const", [](Objects&) { (void)RuleAnswer().json(); }},
      {"lamina::require_layer(lamina::Model const&, std::basic_string_view<char, std::char_traits<char> "
       ">)",
       [](Objects& o) { require_layer(o.model, o.explanation.layers[0].name); }},
      {"lamina::require_rule(lamina::Model const&, std::basic_string_view<char, std::char_traits<char> "
       ">)",
       [](Objects& o) { require_rule(o.model, "fuse-linear"); }},
      {"lamina::to_string[abi:cxx11](lamina::RuleEvent const&)",
       [](Objects&) { (void)to_string(RuleEvent()); }},
      {"lamina::draw_format_named(std::basic_string_view<char, std::char_traits<char> >)",
       [](Objects&) { (void)draw_format_named("svg"); }},
      {"lamina::draw_stage_named(std::basic_string_view<char, std::char_traits<char> >)",
       [](Objects&) { (void)draw_stage_named("both"); }},
      {"lamina::element_count(std::span<long const, 18446744073709551615ul>)",
       [](Objects& o) { (void)element_count(o.tensor.shape()); }},
      {"lamina::operator<<(std::basic_ostream<char, std::char_traits<char> >&, lamina::ElementType)",
       [](Objects& o) { o.out << ElementType::f32; }},
      {"lamina::operator<<(std::basic_ostream<char, std::char_traits<char> >&, lamina::Port const&)",
       [](Objects& o) { o.out << Port(); }},
      {"lamina::operator<<(std::basic_ostream<char, std::char_traits<char> >&, lamina::Tensor const&)",
       [](Objects& o) { o.out << o.tensor; }},
      {"lamina::option_list()", [](Objects&) { (void)option_list(); }},
      {"lamina::register_extension(std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> > const&, int (*)(lamina_host const*, lamina_registrar*))",
       [](Objects&) {
         register_extension("guarded", [](const lamina_host*, lamina_registrar*) { return 0; });
       }},
      {"lamina::to_string[abi:cxx11](lamina::Port const&)", [](Objects&) { (void)to_string(Port()); }},
      {"lamina::version[abi:cxx11]()", [](Objects&) { (void)version(); }},
  };
  return all;
}

}  // namespace lamina::testing
