// Whether the judges of generated worlds can catch anything: a drain that was broken on purpose, one defect at a time.
// ./dev mutants does the same with patches of the program; these are tried each time.
#include <gtest/gtest.h>

#include "sim/objects.hpp"
#include "tests/scenario/seeded_run.hpp"
#include "tests/support/broken_wire.hpp"

namespace haulout::scenario {
namespace {

using haulout::testing::BrokenWire;
using haulout::testing::is_eviction;
using sim::Json;

Sabotage on_the_wire(BrokenWire::Request request, BrokenWire::Answer answer) {
  return [request = std::move(request), answer = std::move(answer)](http::Transport& sound) {
    return std::make_unique<BrokenWire>(sound, request, answer);
  };
}

Sabotage changes_evictions(std::function<void(Json& body)> change) {
  return on_the_wire(
      [change = std::move(change)](const sim::Call& call, http::Request& request) {
        if (!is_eviction(call)) return;
        Json body = Json::parse(request.body);
        change(body);
        request.body = body.dump();
      },
      BrokenWire::no_answer);
}

struct Defect {
  const char* what;
  Sabotage sabotage;
  const char* caught_as;
  std::uint64_t first_seed = 1;  // near the one that catches it
};

void PrintTo(const Defect& defect, std::ostream* out) {
  *out << defect.what;
}

class Sabotages : public ::testing::TestWithParam<Defect> {};

TEST_P(Sabotages, AreCaught) {
  constexpr std::uint64_t tries = 60;
  const Defect& defect = GetParam();
  for (std::uint64_t seed = defect.first_seed; seed < defect.first_seed + tries; ++seed)
    for (const std::string& violation : run_seed(seed, sim::newest_generation, defect.sabotage).violations)
      if (violation.find(defect.caught_as) != std::string::npos) return;
  ADD_FAILURE() << "in " << tries << " worlds nobody has noticed that a drain " << defect.what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Sabotages,
    ::testing::Values(Defect{"names no instance of the pods that it evicts",
                             changes_evictions([](Json& body) { body["deleteOptions"].erase("preconditions"); }),
                             "P2: an eviction without a UID"},
                      Defect{"gives pods no time to end",
                             changes_evictions([](Json& body) { body["deleteOptions"]["gracePeriodSeconds"] = 0; }),
                             "P1: another grace period than was asked for"},
                      Defect{"deletes instead of evicting",
                             on_the_wire(
                                 [](const sim::Call& call, http::Request& request) {
                                   if (!is_eviction(call)) return;
                                   request.method = "DELETE";
                                   request.target = request.target.substr(0, request.target.find("/eviction"));
                                   request.body.clear();
                                 },
                                 BrokenWire::no_answer),
                             "P1: the drain asked for"},
                      Defect{"is content with lists of any age",
                             on_the_wire(
                                 [](const sim::Call& call, http::Request& request) {
                                   if (call.verb == "list") request.target += "&resourceVersion=0";
                                 },
                                 BrokenWire::no_answer),
                             "P4: the drain trusts a list that may be old"},
                      Defect{"overlooks a pod in its lists",
                             on_the_wire(BrokenWire::no_request,
                                         [](const sim::Call& call, Result<http::Response>& answer) {
                                           if (!answer || answer->status != 200 || call.verb != "list" || !call.info)
                                             return;
                                           Json body = Json::parse(answer->body, nullptr, false);
                                           if (call.info->resource != "pods" || !body.is_object() ||
                                               body["items"].empty())
                                             return;
                                           body["items"].erase(body["items"].begin());
                                           answer->body = body.dump();
                                         }),
                             "P3: drained, but the pod is there"},
                      Defect{"takes an eviction whose answer is lost for accepted",
                             on_the_wire(BrokenWire::no_request,
                                         [](const sim::Call& call, Result<http::Response>& answer) {
                                           if (answer || !is_eviction(call)) return;
                                           http::Response accepted;
                                           accepted.status = 201;
                                           accepted.headers.set("Content-Type", "application/json");
                                           accepted.body =
                                               R"({"kind":"Status","apiVersion":"v1","status":"Success","code":201})";
                                           answer = std::move(accepted);
                                         }),
                             "P4: says evicted, but nobody has accepted that", 30}),
    [](const auto& param) {
      std::string name = param.param.what;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

}  // namespace
}  // namespace haulout::scenario
