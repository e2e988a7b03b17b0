// The name of a member of a JSON object (sorted_map.hpp). The objects of a cluster have few different names of members
// ("metadata", "labels", …), so equal names share one text: to copy such a name takes no memory, and a name is smaller
// than a std::string. Only the first names that a thread sees are shared, so other people's objects cannot fill the
// memory: each later name has a text of its own.
//
// Names are found by their tag: a number that few names share, which is compared without reading the texts.
//
// A name must not be used by another thread than the one that has made it. Fails only if there is no memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace haulout::placement {

class MemberName {
 public:
  using Tag = std::uint32_t;

  explicit MemberName(std::string_view name);
  MemberName(const MemberName& other)
      : text_(other.is_shared_ ? other.text_ : new std::string(*other.text_)),
        tag_(other.tag_),
        is_shared_(other.is_shared_) {}
  MemberName(MemberName&& other) noexcept
      : text_(std::exchange(other.text_, nullptr)),
        tag_(other.tag_),
        is_shared_(std::exchange(other.is_shared_, true)) {}
  MemberName& operator=(MemberName other) noexcept {
    std::swap(text_, other.text_);
    std::swap(tag_, other.tag_);
    std::swap(is_shared_, other.is_shared_);
    return *this;
  }
  ~MemberName() {
    if (!is_shared_) delete text_;
  }

  // A name that was moved from must not be read.
  operator const std::string&() const { return *text_; }  // NOLINT(*-explicit-*): nlohmann::json reads names as texts
  std::string_view view() const { return *text_; }
  // True if this is the name. `tag` is that of the name.
  bool is(std::string_view name, Tag tag) const { return tag_ == tag && view() == name; }
  // The length and three characters of the name.
  static Tag tag_of(std::string_view name) {
    if (name.empty()) return 0;
    const auto byte = [&name](std::size_t at) { return static_cast<Tag>(static_cast<unsigned char>(name[at])); };
    return static_cast<Tag>(name.size()) ^ byte(0) << 8U ^ byte(name.size() / 2) << 16U ^ byte(name.size() - 1) << 24U;
  }
  // Equal names mostly share their text.
  bool operator==(const MemberName& other) const { return text_ == other.text_ || *text_ == *other.text_; }

 private:
  const std::string* text_;
  Tag tag_;
  bool is_shared_;
};

}  // namespace haulout::placement
