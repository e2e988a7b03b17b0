// The members of a JSON object, for the object type of nlohmann::basic_json: a map whose entries are in one vector,
// sorted by key. The JSON of a simulated cluster is read, copied and compared far more often than it gets new members,
// and with this map that takes a fraction of the time and of the memory that it takes with a tree. The entries have
// MemberNames instead of texts as keys.
//
// Unlike those of std::map, references and iterators are valid only until the next insertion or removal. Pure.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/member_name.hpp"

namespace haulout::placement {

// nlohmann::basic_json prescribes the parameters; Key is std::string. The entries are always in the order of the bytes
// of their keys.
template <class Key, class T, class IgnoredLess = std::less<>,
          class IgnoredAllocator = std::allocator<std::pair<const Key, T>>>
class SortedMap {
  using Entries = std::vector<std::pair<MemberName, T>>;

 public:
  using key_type = Key;
  using mapped_type = T;
  using value_type = std::pair<MemberName, T>;
  using key_compare = std::less<>;
  using size_type = typename Entries::size_type;
  using difference_type = typename Entries::difference_type;
  using reference = value_type&;
  using const_reference = const value_type&;
  using iterator = typename Entries::iterator;
  using const_iterator = typename Entries::const_iterator;

  SortedMap() = default;
  template <class Iterator>
  SortedMap(Iterator first, Iterator last) {
    insert(first, last);
  }

  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  const_iterator cbegin() const { return entries_.begin(); }
  const_iterator cend() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  size_type size() const { return entries_.size(); }
  size_type max_size() const { return entries_.max_size(); }
  void clear() { entries_.clear(); }

  iterator find(std::string_view key) { return entries_.begin() + place_of(key); }
  const_iterator find(std::string_view key) const { return entries_.begin() + place_of(key); }
  T& at(std::string_view key) { return const_cast<T&>(std::as_const(*this).at(key)); }
  const T& at(std::string_view key) const {
    const auto found = find(key);
    if (found == end()) throw std::out_of_range("key not found");
    return found->second;
  }
  T& operator[](std::string_view key) { return emplace(key, T()).first->second; }

  template <class V>
  std::pair<iterator, bool> emplace(std::string_view key, V&& value) {
    // Text that a program has written mostly has its members in order.
    const auto place = entries_.empty() || entries_.back().first.view() < key
                           ? entries_.end()
                           : std::lower_bound(entries_.begin(), entries_.end(), key, is_before);
    if (place != entries_.end() && place->first.view() == key) return {place, false};
    return {entries_.emplace(place, key, std::forward<V>(value)), true};
  }
  std::pair<iterator, bool> insert(const value_type& entry) { return emplace(entry.first.view(), entry.second); }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) {
      const std::string& key = first->first;
      emplace(key, first->second);
    }
  }

  iterator erase(const_iterator place) { return entries_.erase(place); }
  iterator erase(const_iterator first, const_iterator last) { return entries_.erase(first, last); }
  size_type erase(std::string_view key) {
    const auto found = find(key);
    if (found == end()) return 0;
    entries_.erase(found);
    return 1;
  }

  friend bool operator==(const SortedMap& one, const SortedMap& other) { return one.entries_ == other.entries_; }

 private:
  // With up to so many entries, comparing the tags of all keys is faster than a binary search.
  static constexpr std::size_t few = 16;

  static bool is_before(const value_type& entry, std::string_view key) { return entry.first.view() < key; }
  // Returns the index of the key; that of the end if there is no such key.
  difference_type place_of(std::string_view key) const {
    const auto begin = entries_.begin(), end = entries_.end();
    auto place = begin;
    if (entries_.size() <= few) {
      const MemberName::Tag tag = MemberName::tag_of(key);
      while (place != end && !place->first.is(key, tag)) ++place;
    } else {
      place = std::lower_bound(begin, end, key, is_before);
      if (place != end && place->first.view() != key) place = end;
    }
    return place - begin;
  }

  Entries entries_;
};

}  // namespace haulout::placement
