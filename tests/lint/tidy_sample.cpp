// Mistakes, each with the name of the check that must find it. This file belongs to no program: `./dev tidy` first
// checks that clang-tidy finds all of these mistakes here, and nothing else.
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using std::unique_lock;  // misc-unused-using-decls

namespace haulout {

struct Base {  // cppcoreguidelines-virtual-class-destructor
  virtual int size() const { return 0; }
};

struct badly_named {};  // readability-identifier-naming

struct Converts {
  Converts(int value) : value_(value) {}  // google-explicit-constructor
  int value_;
};

std::string use_after_move(std::string text) {
  std::string taken = std::move(text);
  return taken + text;  // bugprone-use-after-move
}

int narrowed(double value) {
  int whole = 0;
  whole += value;  // bugprone-narrowing-conversions
  return whole;
}

std::size_t copied(const std::vector<std::string>& texts) {
  std::size_t sum = 0;
  for (const std::string text : texts) sum += text.size();  // performance-for-range-copy
  return sum;
}

template <class T>
bool chained(T a, T b, T c) {
  return a < b < c;  // bugprone-chained-comparison
}
template bool chained(int, int, int);

struct Mutex {
  void lock();
  void unlock();
};

boost::asio::awaitable<void> held(Mutex& mutex, boost::asio::awaitable<void> other) {
  const std::lock_guard<Mutex> lock(mutex);  // misc-coroutine-hostile-raii
  co_await std::move(other);                 // cppcoreguidelines-no-suspend-with-lock
}

auto captures(int value) {
  auto later = [value]() -> boost::asio::awaitable<int> {  // cppcoreguidelines-avoid-capturing-lambda-coroutines
    co_return value;
  };
  return later;
}

}  // namespace haulout
