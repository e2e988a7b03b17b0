// Where text goes. Writing never blocks the drain and never fails it: a reader that is slow is waited for at the end
// only, a reader that has gone (closed pipe, vanished terminal) is forgotten.
#pragma once

#include <string>
#include <string_view>

namespace haulout::agent {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
};

// A file descriptor, borrowed. SIGPIPE must be ignored by the process.
class FdSink final : public Sink {
 public:
  // More than this is kept for nobody: the rest is dropped.
  static constexpr std::size_t backlog_limit = std::size_t{32} * 1024 * 1024;

  explicit FdSink(int fd) : fd_(fd) {}
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  void write(std::string_view text) override;
  // Writes what can be written without waiting.
  void pump();
  // Waits until everything is written or the reader takes nothing for `patience_ms`; negative: for ever.
  void flush(int patience_ms);
  bool broken() const { return broken_; }
  std::size_t backlog() const { return pending_.size() - written_; }

 private:
  bool wait_writable(int timeout_ms);
  bool write_some();

  int fd_;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
  bool broken_ = false;
};

}  // namespace haulout::agent
