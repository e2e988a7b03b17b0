// Where text goes. Writing never blocks the drain and never fails it: a reader that is slow is waited for at the end
// only, a reader that has gone (closed pipe, vanished terminal) is forgotten.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>
#include <string_view>

namespace haulout::agent {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
  // False once nobody can read any more what is written.
  virtual bool has_reader() { return true; }
};

// A file descriptor, borrowed. SIGPIPE must be ignored by the process.
class FdSink final : public Sink {
 public:
  // More than this is kept for nobody: the rest is dropped.
  static constexpr std::size_t backlog_limit = std::size_t{32} * 1024 * 1024;

  explicit FdSink(int fd) : fd_(fd) {}
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // From now on what is said in one turn of the event loop is written together, after it. Before the loop is gone,
  // flush() has written all.
  void gather(boost::asio::any_io_executor executor) { executor_ = std::move(executor); }
  // From now on `other` has written before this does, so that a reader of both sees them in their order. Borrowed.
  void write_after(FdSink& other) { before_ = &other; }

  void write(std::string_view text) override;
  // Finds out without writing anything: a pipe whose other end is closed says so.
  bool has_reader() override;
  // Writes what can be written without waiting.
  void pump();
  // Waits until everything is written or the reader takes nothing for `patience_ms`; negative: for ever.
  void flush(int patience_ms);
  bool broken() const { return broken_; }
  // errno of the write that broke it, be it a full disk; 0: none, or its reader has gone.
  int failure() const { return failure_; }
  std::size_t backlog() const { return pending_.size() - written_; }

 private:
  bool wait_writable(int timeout_ms);
  bool write_some();

  int fd_;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
  boost::asio::any_io_executor executor_;
  bool gathers_ = false;
  FdSink* before_ = nullptr;
  bool broken_ = false;
  int failure_ = 0;
};

}  // namespace haulout::agent
