// Holds bytes that were read from a connection and not yet parsed. It starts with 8 KB and doubles each time a read
// fills it, up to 64 KB. It grows beyond that only while unparsed bytes fill it, such as a long message head. No I/O;
// nothing fails.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace haulout::http {

class Buffer {
 public:
  static constexpr std::size_t start_capacity = std::size_t{8} * 1024;
  static constexpr std::size_t largest_read = std::size_t{64} * 1024;

  // `largest` is the limit for the unparsed bytes that a peer can make the buffer hold. At least 64 KB are allowed.
  explicit Buffer(std::size_t largest) : largest_(std::max(largest, largest_read)) {}

  // Returns free space for the next read. It is empty if the buffer holds `largest` unparsed bytes.
  std::span<char> prepare() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (begin_ > 0) {
      std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const bool read_filled = filled_ && capacity_ < largest_read;
    if (capacity_ == 0 || end_ == capacity_ || read_filled) grow();
    return {data_.get() + end_, capacity_ - end_};
  }
  void commit(std::size_t count) {
    end_ += count;
    filled_ = end_ == capacity_;
  }
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t count) { begin_ += count; }

 private:
  void grow() {
    const std::size_t wanted = std::min(largest_, std::max(start_capacity, capacity_ * 2));
    if (wanted == capacity_) return;
    auto larger = std::make_unique_for_overwrite<char[]>(wanted);
    if (end_ > 0) std::memcpy(larger.get(), data_.get(), end_);
    data_ = std::move(larger);
    capacity_ = wanted;
    filled_ = false;
  }

  std::size_t largest_;
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool filled_ = false;
};

}  // namespace haulout::http
