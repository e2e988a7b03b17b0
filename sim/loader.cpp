#include "sim/loader.hpp"

#include <fmt/format.h>

#include <tuple>

#include "k8s/yaml_codec.hpp"
#include "sim/shapes.hpp"

namespace haulout::sim {
namespace {

std::string key_of(const Json& object) {
  return ns_of(object).empty() ? name_of(object) : ns_of(object) + "/" + name_of(object);
}

// The API server's decoder treats a null field like an absent one.
void drop_nulls(Json& value) {
  if (value.is_object())
    for (auto member = value.begin(); member != value.end();)
      member = member->is_null() ? value.erase(member) : std::next(member);
  if (value.is_structured())
    for (Json& inner : value) drop_nulls(inner);
}

Result<> collect(Json document, std::vector<Json>& into) {
  if (document.is_null()) return {};
  if (!document.is_object()) return Error(Errc::invalid, "not a Kubernetes object");
  const std::string kind = text(document, "/kind");
  if (document.contains("items") && document["items"].is_array()) {
    // A typed list ("PodList", as the API returns it) omits the kind of its items.
    const std::string of = kind.ends_with("List") ? kind.substr(0, kind.size() - 4) : "";
    for (Json& item : document["items"]) {
      if (item.is_object() && !item.contains("kind") && !of.empty()) item["kind"] = of;
      auto added = collect(std::move(item), into);
      if (!added) return added;
    }
    return {};
  }
  if (kind == "Status") return Error(Errc::invalid, "a Status instead of objects: " + text(document, "/message"));
  if (kind == "Table") return Error(Errc::invalid, "a Table, which has no objects in it: use -o json or -o yaml");
  if (kind.empty()) return Error(Errc::invalid, "an object without kind");
  if (!find_kind(kind)) return {};
  if (name_of(document).empty()) return Error(Errc::invalid, fmt::format("a {} without metadata.name", kind));
  drop_nulls(document);
  if (const auto problem = shape_problem(document))
    return Error(Errc::invalid, fmt::format("{} {}: {}", kind, key_of(document), *problem));
  into.push_back(std::move(document));
  return {};
}

bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// Describes the position of the syntax error. The parser's own message would quote the text.
std::string broken_json(std::string_view text) {
  std::size_t byte = 0;
  try {
    std::ignore = Json::parse(text);
  } catch (const Json::parse_error& error) {
    byte = error.byte;
  } catch (const Json::out_of_range&) {
    return "a number is out of range";
  }
  if (byte > text.size()) return "it is JSON that ends in the middle: was it written to its end?";
  return "not valid JSON: " + k8s::place_of(text, byte);
}

// Tries JSON first: a snapshot of a whole cluster is large, and the YAML reader is slow.
Result<std::vector<Json>> documents(std::string_view text) {
  std::vector<Json> result;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) {
    result.push_back(std::move(json));
    return result;
  }
  auto converted = k8s::yaml_documents_to_json(text);
  if (!converted && looks_like_json(text)) return Error(Errc::decode, broken_json(text));
  if (!converted) return std::move(converted).error();
  for (const std::string& document : *converted) {
    result.push_back(Json::parse(document, nullptr, false));
    if (result.back().is_discarded())
      return Error(Errc::decode, fmt::format("document {}: not valid UTF-8", result.size()));
  }
  return result;
}

}  // namespace

Result<std::vector<Json>> read_objects(std::string_view text) {
  auto parsed = documents(text);
  if (!parsed) return std::move(parsed).error();
  std::vector<Json> objects;
  std::size_t number = 0;
  for (Json& document : *parsed) {
    ++number;
    auto added = collect(std::move(document), objects);
    if (!added) return std::move(added).error().with_context(fmt::format("document {}", number));
  }
  return objects;
}

}  // namespace haulout::sim
