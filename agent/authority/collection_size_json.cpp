// Reads the size of a collection from a page of its list: the JSON part of authority.hpp.
#include <nlohmann/json.hpp>

#include "agent/authority/authority.hpp"

namespace haulout::agent {

std::size_t objects_in_collection(std::string_view first_page) {
  const auto list = nlohmann::json::parse(first_page, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array()) return 0;
  const auto metadata = list.find("metadata");
  if (metadata == list.end() || !metadata->is_object()) return 0;
  const auto left = metadata->find("remainingItemCount");
  const bool more = metadata->contains("continue") && (*metadata)["continue"] != "";
  // The server leaves the count out if it does not know how many objects follow.
  if (left == metadata->end()) return more ? 0 : list["items"].size();
  return left->is_number_unsigned() ? list["items"].size() + left->get<std::size_t>() : 0;
}

}  // namespace haulout::agent
