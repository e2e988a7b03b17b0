#include "drain/request_window.hpp"

namespace haulout::drain {

void RequestWindow::look(TimePoint now) {
  for (auto& [uid, request] : out_) {
    if (request.slow || now - request.since < slow) continue;
    request.slow = true;
    if (grows_) limit_ = std::max(usual_, std::min(limit_ + 1, most));
  }
}

TimePoint RequestWindow::next() const {
  TimePoint next = TimePoint::max();
  if (!grows_ || limit_ >= most) return next;
  for (const auto& [uid, request] : out_)
    if (!request.slow) next = std::min(next, request.since + slow);
  return next;
}

void RequestWindow::sent(const std::string& uid, const std::string& ns, TimePoint now) {
  out_.insert_or_assign(uid, Request{ns, now});
  ++namespaces_[ns];
}

void RequestWindow::answered(const std::string& uid, bool good) {
  const auto found = out_.find(uid);
  if (found == out_.end()) return;
  const Request request = std::move(found->second);
  out_.erase(found);
  if (const auto of_ns = namespaces_.find(request.ns); --of_ns->second == 0) namespaces_.erase(of_ns);
  if (!good) {
    grows_ = false;
    limit_ = usual_;
  } else if (request.slow) {
    grows_ = true;
  } else if (limit_ > usual_) {
    --limit_;
  }
}

}  // namespace haulout::drain
