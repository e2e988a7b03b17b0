#include "http/buffer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace haulout::http {
namespace {

std::size_t fill(Buffer& buffer, char with) {
  const auto room = buffer.prepare();
  std::fill(room.begin(), room.end(), with);
  buffer.commit(room.size());
  return room.size();
}

TEST(Buffer, GrowsWhileReadsFillItUpToTheLargestRead) {
  Buffer buffer(1000);
  std::size_t largest = 0;
  for (int i = 0; i < 10; ++i) {
    largest = std::max(largest, fill(buffer, 'a'));
    buffer.consume(buffer.view().size());
  }
  EXPECT_EQ(largest, Buffer::largest_read);
}

TEST(Buffer, StaysSmallForSmallReads) {
  Buffer buffer(1000);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(buffer.prepare().size(), Buffer::start_capacity);
    buffer.commit(100);
    buffer.consume(100);
  }
}

TEST(Buffer, KeepsWhatIsNotConsumed) {
  Buffer buffer(1000);
  const auto first = fill(buffer, 'a');
  buffer.consume(first - 3);
  const auto second = fill(buffer, 'b');
  EXPECT_EQ(buffer.view(), "aaa" + std::string(second, 'b'));
}

TEST(Buffer, HasNoRoomBeyondItsLimit) {
  Buffer buffer(200'000);
  std::size_t held = 0;
  while (const std::size_t more = fill(buffer, 'a')) held += more;
  EXPECT_EQ(held, 200'000u);
  EXPECT_EQ(buffer.view().size(), held);
}

}  // namespace
}  // namespace haulout::http
