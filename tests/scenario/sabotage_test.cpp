// Tests whether the checks of generated worlds can detect defects: each case breaks the drain on purpose in one way.
// `./dev mutants` does the same with patches of the program. These cases run with every test run.
#include <gtest/gtest.h>

#include <functional>

#include "sim/objects.hpp"
#include "tests/scenario/seeded_run.hpp"
#include "tests/support/broken_wire.hpp"

namespace haulout::scenario {
namespace {

using haulout::testing::BrokenWire;
using haulout::testing::delete_instead;
using haulout::testing::is_eviction;
using haulout::testing::name_no_instance;
using sim::Json;

void give_no_time(const sim::Call& call, http::Request& request) {
  if (!is_eviction(call)) return;
  Json body = Json::parse(request.body);
  body["deleteOptions"]["gracePeriodSeconds"] = 0;
  request.body = body.dump();
}

void list_from_cache(const sim::Call& call, http::Request& request) {
  if (call.verb == "list") request.target += "&resourceVersion=0";
}

void overlook_a_pod(const sim::Call& call, Result<http::Response>& answer) {
  if (!answer || answer->status != 200 || call.verb != "list" || !call.info) return;
  Json body = Json::parse(answer->body, nullptr, false);
  if (call.info->resource != "pods" || !body.is_object() || body["items"].empty()) return;
  body["items"].erase(body["items"].begin());
  answer->body = body.dump();
}

void accept_what_is_lost(const sim::Call& call, Result<http::Response>& answer) {
  if (answer || !is_eviction(call)) return;
  http::Response accepted;
  accepted.status = 201;
  accepted.headers.set("Content-Type", "application/json");
  accepted.body = R"({"kind":"Status","apiVersion":"v1","status":"Success","code":201})";
  answer = std::move(accepted);
}

bool is_pod_patch(const sim::Call& call) {
  return call.verb == "patch" && call.info && call.info->resource == "pods";
}

// Applies `change` to each patch that releases a pod.
BrokenWire::Request in_release(std::function<void(Json& metadata)> change) {
  return [change = std::move(change)](const sim::Call& call, http::Request& request) {
    if (!is_pod_patch(call)) return;
    Json body = Json::parse(request.body);
    const bool releases = body["metadata"].contains("labels") && body["metadata"].contains("annotations");
    if (!releases) return;
    change(body["metadata"]);
    request.body = body.dump();
  };
}

// The server only pretends to remove a mark.
void keep_the_mark(const sim::Call& call, http::Request& request) {
  if (is_pod_patch(call) && request.body.find("\"haulout.dev/surged\":null") != std::string::npos)
    request.target += request.target.find('?') == std::string::npos ? "?dryRun=All" : "&dryRun=All";
}

// The drain believes that fewer pods were Ready than there were.
void tell_of_one_ready_pod(Json& metadata) {
  Json mark = Json::parse(metadata["annotations"]["haulout.dev/surged"].get<std::string>());
  mark["ready"] = 1;
  metadata["annotations"]["haulout.dev/surged"] = mark.dump();
}

// The drain believes that each Deployment may run any number of additional pods.
void call_each_surgeable(const sim::Call& call, Result<http::Response>& answer) {
  if (!answer || answer->status != 200 || call.verb != "get" || !call.info || call.info->resource != "deployments")
    return;
  Json body = Json::parse(answer->body, nullptr, false);
  if (!body.is_object()) return;
  body["spec"]["strategy"] = {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", "100%"}}}};
  answer->body = body.dump();
}

// The drain believes that each Deployment was scaled down to nothing.
void call_each_scaled_down(const sim::Call& call, Result<http::Response>& answer) {
  if (!answer || answer->status != 200 || call.verb != "get" || !call.info || call.info->resource != "deployments")
    return;
  Json body = Json::parse(answer->body, nullptr, false);
  if (!body.is_object()) return;
  body["spec"]["replicas"] = 0;
  answer->body = body.dump();
}

// The drain believes that each pod with the label is Ready as soon as it exists.
void call_ready(Json& pod) {
  if (!sim::label(pod, "pod-template-hash") || sim::text(pod, "/spec/nodeName") == "n1") return;
  pod["status"]["phase"] = "Running";
  pod["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
}
void list_as_ready(const sim::Call& call, Result<http::Response>& answer) {
  if (!answer || answer->status != 200 || call.verb != "list" || !call.info || call.info->resource != "pods") return;
  Json body = Json::parse(answer->body, nullptr, false);
  if (!body.is_object() || !body["items"].is_array()) return;
  for (Json& pod : body["items"]) call_ready(pod);
  answer->body = body.dump();
}
void tell_as_ready(const sim::Call& call, std::string& line) {
  if (!call.info || call.info->resource != "pods") return;
  Json event = Json::parse(line, nullptr, false);
  if (!event.is_object() || !event["object"].is_object()) return;
  call_ready(event["object"]);
  line = event.dump();
}

// The drain removes the mark in the patch that was to restore the label.
void unmark_at_once(const sim::Call& call, http::Request& request) {
  if (!is_pod_patch(call)) return;
  Json body = Json::parse(request.body);
  Json& metadata = body["metadata"];
  if (!metadata.contains("labels") || metadata.contains("annotations")) return;
  metadata.erase("labels");
  metadata["annotations"] = {{"haulout.dev/surged", nullptr}};
  request.body = body.dump();
}

void give_another_label(const sim::Call& call, http::Request& request) {
  if (!is_pod_patch(call)) return;
  Json body = Json::parse(request.body);
  Json& metadata = body["metadata"];
  if (!metadata.contains("labels") || metadata.contains("annotations")) return;
  metadata["labels"]["pod-template-hash"] = "other";
  request.body = body.dump();
}

struct Defect {
  const char* what;
  BrokenWire::Request request;
  BrokenWire::Answer answer;
  const char* caught_as;
  std::uint64_t first_seed = 1;  // the search starts near the seed that detects the defect
  BrokenWire::Line line{};
};

void PrintTo(const Defect& defect, std::ostream* out) {
  *out << defect.what;
}

class Sabotages : public ::testing::TestWithParam<Defect> {};

TEST_P(Sabotages, AreCaught) {
  constexpr std::uint64_t tries = 60;
  const Defect& defect = GetParam();
  const Sabotage sabotage = [&defect](http::Transport& sound) {
    return std::make_unique<BrokenWire>(sound, defect.request, defect.answer, defect.line);
  };
  for (std::uint64_t seed = defect.first_seed; seed < defect.first_seed + tries; ++seed)
    for (const std::string& violation : run_seed(seed, sim::newest_generation, sabotage).violations)
      if (violation.find(defect.caught_as) != std::string::npos) return;
  ADD_FAILURE() << "in " << tries << " worlds nobody has noticed that a drain " << defect.what;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Sabotages,
    ::testing::Values(
        Defect{"names no instance of the pods that it evicts", name_no_instance, BrokenWire::no_answer,
               "P2: an eviction without a UID"},
        Defect{"gives pods no time to end", give_no_time, BrokenWire::no_answer,
               "P1: another grace period than was asked for"},
        Defect{"deletes instead of evicting", delete_instead, BrokenWire::no_answer, "P1: the drain asked for"},
        Defect{"is content with lists of any age", list_from_cache, BrokenWire::no_answer,
               "P4: the drain trusts a list that may be old"},
        Defect{"overlooks a pod in its lists", BrokenWire::no_request, overlook_a_pod,
               "P3: drained, but the pod is there"},
        Defect{"takes an eviction whose answer is lost for accepted", BrokenWire::no_request, accept_what_is_lost,
               "P4: says evicted, but nobody has accepted that", 30},
        Defect{"releases a pod whatever its version",
               in_release([](Json& metadata) { metadata.erase("resourceVersion"); }), BrokenWire::no_answer,
               "surge: the patch of"},
        Defect{"takes another label off, too", in_release([](Json& metadata) { metadata["labels"]["app"] = nullptr; }),
               BrokenWire::no_answer, "surge: the patch of"},
        Defect{"forgets how many pods were Ready", in_release(tell_of_one_ready_pod), BrokenWire::no_answer,
               "Ready pods, but there were"},
        Defect{"takes each Deployment for one that may be surged", BrokenWire::no_request, call_each_surgeable,
               "was released, but"},
        Defect{"takes each Deployment for one that was scaled down", BrokenWire::no_request, call_each_scaled_down,
               "was evicted with"},
        Defect{"believes that each replacement is Ready", BrokenWire::no_request, list_as_ready, "was evicted with", 1,
               tell_as_ready},
        Defect{"removes its mark before the ReplicaSet owns the pod", unmark_at_once, BrokenWire::no_answer,
               "the mark is removed before"},
        Defect{"gives a pod back with another label", give_another_label, BrokenWire::no_answer,
               "gets the label other"},
        Defect{"leaves its marks", keep_the_mark, BrokenWire::no_answer, "but its mark was left on", 122}),
    [](const auto& param) {
      std::string name = param.param.what;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

}  // namespace
}  // namespace haulout::scenario
