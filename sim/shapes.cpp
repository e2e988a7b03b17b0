#include "sim/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "k8s/codec.hpp"

namespace haulout::sim {
namespace {

enum class Shape { object, list, text, integer, flag, integer_or_text, time };

struct Field {
  std::string_view path;  // `*` means every value of an object, `[]` every entry of a list
  Shape shape;
};

// Fields of core/v1, apps/v1, policy/v1, storage/v1 and coordination/v1 together: a path has the same type in all of
// them.
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

const char* name_of(Shape shape) {
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
  if (!value.is_object()) return true;  // the field of the shorter path reports this
  const auto found = value.find(step);
  return found == value.end() || fits_rest(*found);
}

}  // namespace

std::optional<std::string> shape_problem(const Json& object) {
  for (const Field& field : fields)
    if (!fits(object, field.path, field.shape)) return fmt::format("{} has to be {}", field.path, name_of(field.shape));
  return std::nullopt;
}

}  // namespace haulout::sim
