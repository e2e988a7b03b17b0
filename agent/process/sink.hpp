// Outputs for text. Writing never blocks the drain and never fails. The program waits for a slow reader only at its
// end, in flush(). It ignores a reader that has closed its end (closed pipe, closed terminal).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>
#include <string_view>

namespace haulout::agent {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
  // False once the written text has no reader any more.
  virtual bool has_reader() { return true; }
};

// A file descriptor, which it borrows. The process must ignore SIGPIPE.
class FdSink final : public Sink {
 public:
  // Largest amount of unwritten text, in bytes; text that exceeds it is dropped.
  static constexpr std::size_t backlog_limit = std::size_t{32} * 1024 * 1024;

  explicit FdSink(int fd) : fd_(fd) {}
  FdSink(const FdSink&) = delete;
  FdSink& operator=(const FdSink&) = delete;

  // From now on, collects the text of one turn of the event loop and writes it after that turn. Call flush() before the
  // loop is destroyed, so that all text is written.
  void gather(boost::asio::any_io_executor executor) { executor_ = std::move(executor); }
  // Calls pump() of `other` before each write to this sink, so that their output keeps its order. Borrows `other`.
  void write_after(FdSink& other) { before_ = &other; }

  void write(std::string_view text) override;
  // Checks without writing anything: poll() reports a pipe whose other end is closed.
  bool has_reader() override;
  // Writes what it can without waiting.
  void pump();
  // Waits until everything is written, or until the reader accepts nothing for `patience_ms`. A negative value sets no
  // limit.
  void flush(int patience_ms);
  bool broken() const { return broken_; }
  // errno of the failed write, for example for a full disk. 0 if no write failed, or if the reader has closed its end.
  int failure() const { return failure_; }
  std::size_t backlog() const { return pending_.size() - written_; }

 private:
  bool wait_writable(int timeout_ms);
  bool write_some();

  int fd_;
  std::string pending_;
  std::size_t written_ = 0;  // number of bytes of pending_ already written
  boost::asio::any_io_executor executor_;
  bool gathers_ = false;
  FdSink* before_ = nullptr;
  bool broken_ = false;
  int failure_ = 0;
};

}  // namespace haulout::agent
