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
  const std::string name = name_of(object).empty() ? text(object, "/metadata/generateName") : name_of(object);
  return ns_of(object).empty() ? name : ns_of(object) + "/" + name;
}

// The groups in which older API servers had kinds, where they are not the group of all_resources().
constexpr struct {
  std::string_view kind, group;
} earlier_groups[] = {
    {"DaemonSet", "extensions"}, {"Deployment", "extensions"}, {"Event", ""}, {"HorizontalPodAutoscaler", "extensions"},
    {"Job", "extensions"},       {"ReplicaSet", "extensions"},
};

// Returns true if the simulation knows the kind in the group of the object's apiVersion: others have kinds of the same
// name, for example longhorn.io has a Node.
bool is_known(const Json& object) {
  const std::string kind = text(object, "/kind");
  const ResourceInfo* info = find_kind(kind);
  const Json& version = at(object, "/apiVersion");
  if (!info || !version.is_string()) return info != nullptr;
  const std::string whole = version.get<std::string>();
  const std::size_t slash = whole.find('/');
  const std::string group = slash == std::string::npos ? "" : whole.substr(0, slash);
  return info->group == group || std::ranges::any_of(earlier_groups, [&](const auto& earlier) {
           return earlier.kind == kind && earlier.group == group;
         });
}

// Removes null fields, because the API server's decoder treats them as absent.
void drop_nulls(Json& value) {
  if (value.is_object())
    for (auto member = value.begin(); member != value.end();)
      member = member->is_null() ? value.erase(member) : std::next(member);
  if (value.is_structured())
    for (Json& inner : value) drop_nulls(inner);
}

// Collects the objects of one text after the other.
class Collector {
 public:
  explicit Collector(const Reading& reading) : reading_(reading) {}

  // Takes the object, or the items of a list.
  Result<> take(Json document);
  // Parses the text as one JSON document and takes it. Returns nullopt, and takes nothing, if it is not JSON.
  std::optional<Result<>> take_json(std::istream& text);
  std::vector<Json> objects() { return std::move(objects_); }

 private:
  // The items of a list that is being parsed.
  struct Items {
    std::size_t first = 0;         // number of objects before the list
    bool open = false;             // the parser is within the array
    std::vector<Json> nameless{};  // from the first item on that has no kind: the kind of the list may follow them
    std::optional<Error> failure{};
  };
  // Takes an item of the list, in the order of the list. Notes the first failure: it counts only if the text is JSON.
  void take_item(Items& items, Json item);

  // Returns false for a document with items of another kind, for example the values of a Helm chart.
  bool is_list(const Json& document) const;
  // Returns what becomes of a document that is no object, or of a broken one: it is passed over, or it is the error.
  Result<> pass_over(Foreign why, std::string error);

  const Reading& reading_;
  std::vector<Json> objects_;
};

bool Collector::is_list(const Json& document) const {
  return !reading_.on_foreign || document.contains("kind") ||
         std::ranges::any_of(document["items"],
                             [](const Json& item) { return item.is_object() && item.contains("kind"); });
}

Result<> Collector::pass_over(Foreign why, std::string error) {
  if (!reading_.on_foreign) return Error(Errc::invalid, std::move(error));
  reading_.on_foreign(why);
  return {};
}

Result<> Collector::take(Json document) {
  if (document.is_null()) return {};
  if (!document.is_object()) return pass_over(Foreign::no_object, "not a Kubernetes object");
  const std::string kind = text(document, "/kind");
  if (document.contains("items") && document["items"].is_array() && is_list(document)) {
    // In a typed list ("PodList", as the API returns it) the items have no kind; the kind of the list names it.
    const std::string of = kind.ends_with("List") ? kind.substr(0, kind.size() - 4) : "";
    for (Json& item : document["items"]) {
      if (item.is_object() && !item.contains("kind") && !of.empty()) {
        item["kind"] = of;
        if (document.contains("apiVersion")) item.emplace("apiVersion", document["apiVersion"]);
      }
      auto added = take(std::move(item));
      if (!added) return added;
    }
    return {};
  }
  if (kind == "Status") return Error(Errc::invalid, "a Status instead of objects: " + text(document, "/message"));
  if (kind == "Table") return Error(Errc::invalid, "a Table, which has no objects in it: use -o json or -o yaml");
  if (kind.empty()) return pass_over(Foreign::no_object, "an object without kind");
  if (!is_known(document)) {
    if (reading_.on_unknown) reading_.on_unknown(document);
    return {};
  }
  // Values of a Helm chart may have a `kind`, too.
  if (reading_.on_foreign && !document.contains("apiVersion") && !document.contains("metadata"))
    return pass_over(Foreign::no_object, {});
  const auto broken = [&](std::string problem) -> Result<> {
    if (reading_.may_be_broken && reading_.may_be_broken(kind)) return {};
    if (document.dump().find("{{") != std::string::npos) return pass_over(Foreign::is_template, std::move(problem));
    return Error(Errc::invalid, std::move(problem));
  };
  if (name_of(document).empty() && !(reading_.may_be_nameless && !text(document, "/metadata/generateName").empty()))
    return broken(fmt::format("a {} without metadata.name", kind));
  drop_nulls(document);
  if (const auto problem = shape_problem(document))
    return broken(fmt::format("{} {}: {}", kind, key_of(document), *problem));
  if (reading_.prepare) reading_.prepare(document);
  objects_.push_back(document);  // a copy, because it has no unused capacity
  return {};
}

void Collector::take_item(Items& items, Json item) {
  if (items.failure) return;
  if (!items.nameless.empty() || (item.is_object() && !item.contains("kind"))) {
    items.nameless.push_back(std::move(item));
    return;
  }
  if (auto taken = take(std::move(item)); !taken) items.failure = std::move(taken).error();
}

std::optional<Result<>> Collector::take_json(std::istream& text) {
  using Event = Json::parse_event_t;
  Items items{objects_.size()};
  // Takes the items out of the document: they are at depth 2, in the array at depth 1 under the key "items".
  bool named_items = false;
  const auto is_kept = [&](int depth, Event event, Json& parsed) {
    if (depth == 1 && event == Event::key) {
      named_items = parsed == "items";
      // A second member of this name replaces the first one.
      if (named_items) {
        objects_.resize(items.first);
        items = {objects_.size()};
      }
    }
    if (depth == 1 && (event == Event::array_start || event == Event::array_end))
      items.open = event == Event::array_start && named_items;
    const bool ends = event == Event::object_end || event == Event::array_end || event == Event::value;
    if (depth != 2 || !items.open || !ends) return true;
    take_item(items, std::move(parsed));
    return false;
  };
  Json document = Json::parse(text, is_kept, false);
  if (document.is_discarded()) {
    objects_.resize(items.first);
    return std::nullopt;
  }
  if (items.failure) return std::move(*items.failure);
  if (document.is_object() && document.contains("items") && document["items"].is_array()) {
    if (items.nameless.empty() && objects_.size() > items.first) return Result<>();
    document["items"] = std::move(items.nameless);
  }
  return take(std::move(document));
}

// Lets a stream read a text that is in memory, without a copy of it.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    // A std::streambuf that is only read does not write.
    char* const begin = const_cast<char*>(text.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    setg(begin, begin, begin + text.size());
  }
};

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

// Parses the text as YAML, after it was found to be no JSON.
Result<std::vector<Json>> yaml_documents(std::string_view text) {
  auto converted = k8s::yaml_documents_to_json(text);
  if (!converted && looks_like_json(text)) return Error(Errc::decode, broken_json(text));
  if (!converted) return std::move(converted).error();
  std::vector<Json> result;
  for (const std::string& document : *converted) {
    result.push_back(Json::parse(document, nullptr, false));
    if (result.back().is_discarded())
      return Error(Errc::decode, fmt::format("document {}: not valid UTF-8", result.size()));
  }
  return result;
}

}  // namespace

std::optional<Result<std::vector<Json>>> read_json_objects(std::istream& text, const Reading& reading) {
  Collector collector(reading);
  auto taken = collector.take_json(text);
  if (!taken) return std::nullopt;
  if (!*taken) return Result<std::vector<Json>>(std::move(*taken).error().with_context("document 1"));
  return collector.objects();
}

Result<std::vector<Json>> read_objects(std::string_view text, const Reading& reading) {
  // A snapshot of a large cluster is usually JSON, and the YAML reader is slow.
  TextBuffer buffer(text);
  std::istream stream(&buffer);
  if (auto objects = read_json_objects(stream, reading)) return *std::move(objects);
  auto parsed = yaml_documents(text);
  if (!parsed) return std::move(parsed).error();
  Collector collector(reading);
  std::size_t number = 1;
  for (Json& document : *parsed) {
    auto taken = collector.take(std::move(document));
    if (!taken) return std::move(taken).error().with_context(fmt::format("document {}", number));
    ++number;
  }
  return collector.objects();
}

}  // namespace haulout::sim
