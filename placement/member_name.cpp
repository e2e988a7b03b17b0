#include "placement/member_name.hpp"

#include <unordered_set>

namespace haulout::placement {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Names = std::unordered_set<std::string, Hash, std::equal_to<>>;

// More than the API of Kubernetes has names of fields, and less than 100 KB.
constexpr std::size_t most_shared = 1000;
constexpr std::size_t longest_shared = 64;

// Returns the shared text of this name, or null if it is not shared.
const std::string* shared(std::string_view name) {
  // Never freed, because a static object may have names until the end of the program.
  static thread_local Names* const names = new Names;
  const auto found = names->find(name);
  if (found != names->end()) return &*found;
  if (names->size() >= most_shared || name.size() > longest_shared) return nullptr;
  return &*names->emplace(name).first;
}

}  // namespace

MemberName::MemberName(std::string_view name) : text_(shared(name)), tag_(tag_of(name)), is_shared_(text_ != nullptr) {
  if (!is_shared_) text_ = new std::string(name);
}

}  // namespace haulout::placement
