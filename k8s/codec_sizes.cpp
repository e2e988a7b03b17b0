#include "k8s/codec_sizes.hpp"

#include <fmt/format.h>

#include "k8s/codec_json.hpp"

namespace haulout::k8s {
namespace {

using codec::Json;

// Approximate size of a value as JSON, in bytes.
std::size_t size_of(const Json& json) {
  constexpr std::size_t around = 4;  // quotes, colon or comma, bracket
  std::size_t bytes = around;
  if (const auto* text = json.if_string()) bytes += text->size();
  if (const auto* list = json.if_array())
    for (const Json& item : *list) bytes += size_of(item);
  if (const auto* object = json.if_object())
    for (const auto& member : *object) bytes += around + member.key().size() + size_of(member.value());
  return bytes;
}

std::string name_of(const Json& json) {
  codec::Problem problem;
  const auto metadata = codec::Object(json, "object", problem).object("metadata");
  const std::string ns = metadata.string("namespace");
  return ns.empty() ? metadata.string("name") : ns + "/" + metadata.string("name");
}

}  // namespace

std::string longest_object(std::string_view list) {
  const auto json = codec::parse(list);
  if (!json || !(*json)->is_object()) return {};
  const Json* items = (*json)->get_object().if_contains("items");
  if (items == nullptr || !items->is_array()) return {};
  const Json* longest = nullptr;
  std::size_t most = 0;
  for (const Json& item : items->get_array()) {
    const std::size_t size = size_of(item);
    if (size <= most) continue;
    most = size;
    longest = &item;
  }
  if (longest == nullptr) return {};
  constexpr double kilobyte = 1024;
  const double size = static_cast<double>(most) / kilobyte;
  return fmt::format("{} ({:.0f} kB)", name_of(*longest), size);
}

}  // namespace haulout::k8s
