#include "sim/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "k8s/codec.hpp"
#include "k8s/yaml_codec.hpp"

namespace haulout::sim {
namespace {

enum class Shape { object, list, text, integer, flag, integer_or_text, time };

struct Field {
  std::string_view path;  // `*` means every value of an object, `[]` every entry of a list
  Shape shape;
};

// Fields of core/v1, apps/v1, policy/v1, storage/v1 and coordination/v1 in one table: a path has the same type in all
// of them.
constexpr Field fields[] = {
    {"apiVersion", Shape::text},
    {"metadata", Shape::object},
    {"metadata.name", Shape::text},
    {"metadata.namespace", Shape::text},
    {"metadata.uid", Shape::text},
    {"metadata.generation", Shape::integer},
    {"metadata.labels", Shape::object},
    {"metadata.labels.*", Shape::text},
    {"metadata.annotations", Shape::object},
    {"metadata.annotations.*", Shape::text},
    {"metadata.creationTimestamp", Shape::time},
    {"metadata.deletionTimestamp", Shape::time},
    {"metadata.deletionGracePeriodSeconds", Shape::integer},
    {"metadata.finalizers", Shape::list},
    {"metadata.finalizers.[]", Shape::text},
    {"metadata.ownerReferences", Shape::list},
    {"metadata.ownerReferences.[]", Shape::object},
    {"metadata.ownerReferences.[].controller", Shape::flag},
    {"metadata.managedFields", Shape::list},
    {"metadata.managedFields.[]", Shape::object},
    {"metadata.managedFields.[].fieldsV1", Shape::object},
    {"metadata.managedFields.[].fieldsV1.*", Shape::object},
    {"spec", Shape::object},
    {"spec.nodeName", Shape::text},
    {"spec.replicas", Shape::integer},
    {"spec.priority", Shape::integer},
    {"spec.terminationGracePeriodSeconds", Shape::integer},
    {"spec.unschedulable", Shape::flag},
    {"spec.selector", Shape::object},
    {"spec.ordinals", Shape::object},
    {"spec.ordinals.start", Shape::integer},
    {"spec.volumeClaimTemplates", Shape::list},
    {"spec.volumeClaimTemplates.[]", Shape::object},
    {"spec.minAvailable", Shape::integer_or_text},
    {"spec.maxUnavailable", Shape::integer_or_text},
    {"spec.containers", Shape::list},
    {"spec.containers.[]", Shape::object},
    {"spec.containers.[].name", Shape::text},
    {"spec.containers.[].image", Shape::text},
    {"spec.taints", Shape::list},
    {"spec.taints.[]", Shape::object},
    {"spec.tolerations", Shape::list},
    {"spec.tolerations.[]", Shape::object},
    {"spec.volumes", Shape::list},
    {"spec.volumes.[]", Shape::object},
    {"spec.template", Shape::object},
    {"spec.template.metadata", Shape::object},
    {"spec.template.metadata.labels", Shape::object},
    {"spec.template.metadata.labels.*", Shape::text},
    {"spec.template.metadata.annotations", Shape::object},
    {"spec.template.metadata.annotations.*", Shape::text},
    {"spec.template.spec", Shape::object},
    {"spec.template.spec.containers", Shape::list},
    {"spec.template.spec.containers.[]", Shape::object},
    {"spec.template.spec.containers.[].name", Shape::text},
    {"spec.template.spec.containers.[].image", Shape::text},
    {"spec.template.spec.tolerations", Shape::list},
    {"spec.template.spec.tolerations.[]", Shape::object},
    {"spec.template.spec.volumes", Shape::list},
    {"spec.template.spec.volumes.[]", Shape::object},
    {"status", Shape::object},
    {"status.phase", Shape::text},
    {"status.conditions", Shape::list},
    {"status.conditions.[]", Shape::object},
    {"status.conditions.[].type", Shape::text},
    {"status.conditions.[].status", Shape::text},
    {"status.conditions.[].reason", Shape::text},
    {"status.conditions.[].message", Shape::text},
    {"status.conditions.[].lastTransitionTime", Shape::text},
    {"status.containerStatuses", Shape::list},
    {"status.containerStatuses.[]", Shape::object},
    {"status.nodeInfo", Shape::object},
    {"status.nodeInfo.bootID", Shape::text},
    {"status.disruptedPods", Shape::object},
    {"status.disruptedPods.*", Shape::text},
    {"status.disruptionsAllowed", Shape::integer},
    {"status.detachError", Shape::object},
};

bool has(const Json& value, Shape shape) {
  switch (shape) {
    case Shape::object: return value.is_object();
    case Shape::list: return value.is_array();
    case Shape::text: return value.is_string();
    case Shape::integer: return value.is_number_integer();
    case Shape::flag: return value.is_boolean();
    case Shape::integer_or_text: return value.is_number_integer() || value.is_string();
    case Shape::time: return value.is_string() && k8s::parse_time(value.get<std::string>());
  }
  return false;
}

const char* type_name(Shape shape) {
  switch (shape) {
    case Shape::object: return "an object";
    case Shape::list: return "a list";
    case Shape::text: return "a string";
    case Shape::integer: return "an integer";
    case Shape::flag: return "a boolean";
    case Shape::integer_or_text: return "an integer or a string";
    case Shape::time: return "a time in RFC 3339";
  }
  return "";
}

// Returns true if every value that the path selects has this shape.
bool fits(const Json& value, std::string_view path, Shape shape) {
  if (path.empty()) return has(value, shape);
  const std::size_t dot = path.find('.');
  const std::string_view step = path.substr(0, dot);
  const std::string_view rest = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  const auto fits_rest = [&](const Json& inner) { return fits(inner, rest, shape); };
  if (step == "*" || step == "[]") return std::all_of(value.begin(), value.end(), fits_rest);
  if (!value.is_object()) return true;  // the row of `fields` with the shorter path reports this error
  const auto found = value.find(step);
  return found == value.end() || fits_rest(*found);
}

// Checks the types of an object's fields. The decoder of the API server does this first: it refuses a string in place
// of a list. Objects from a file have not passed that decoder, but the simulation relies on the types. Returns the
// first field with a wrong type and its right type, for example "spec.volumes has to be a list". Fields that the
// simulation does not read may have any type.
std::optional<std::string> shape_problem(const Json& object) {
  for (const Field& field : fields)
    if (!fits(object, field.path, field.shape))
      return fmt::format("{} has to be {}", field.path, type_name(field.shape));
  return std::nullopt;
}

std::string key_of(const Json& object) {
  return ns_of(object).empty() ? name_of(object) : ns_of(object) + "/" + name_of(object);
}

// Removes null fields, because the API server's decoder treats them as absent.
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
    // In a typed list ("PodList", as the API returns it) the items have no kind; the kind of the list names it.
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

// Returns the position of the syntax error. The parser's own message is not used, because it quotes the text.
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

// Parses the text as JSON or, if that fails, as YAML. A snapshot of a large cluster is usually JSON, and the YAML
// reader is slow.
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
