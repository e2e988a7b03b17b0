// Owns a file descriptor, and closes it when destroyed. Not copyable; can be moved. release() returns the descriptor
// without closing it; the caller owns it then. Move assignment swaps: the former descriptor is closed with the other
// object. Nothing fails.
#pragma once

#include <unistd.h>

#include <utility>

namespace haulout {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int taken) : fd_(taken) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace haulout
