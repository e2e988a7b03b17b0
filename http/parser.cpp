#include "http/parser.hpp"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace haulout::http {
namespace {
namespace beast = boost::beast;
using Ec = boost::system::error_code;

// Beast's parser with callbacks that store the message in this project's own types.
template <bool is_request>
class Collector final : public beast::http::basic_parser<is_request> {
 public:
  explicit Collector(const Limits& limits) {
    this->header_limit(static_cast<std::uint32_t>(limits.header));
    if (limits.body)
      this->body_limit(*limits.body);
    else
      this->body_limit(boost::none);
    this->eager(true);
  }

  std::string method;
  std::string target;
  int status = 0;
  Headers headers;
  std::string body;
  bool was_short = false;  // the last put() needed more bytes and left some input unused

 private:
  void on_request_impl(beast::http::verb, beast::string_view name, beast::string_view path, int, Ec&) override {
    method.assign(name.data(), name.size());
    target.assign(path.data(), path.size());
  }
  void on_response_impl(int code, beast::string_view, int, Ec&) override { status = code; }
  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value, Ec&) override {
    headers.add({name.data(), name.size()}, {value.data(), value.size()});
  }
  void on_header_impl(Ec&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, Ec&) override {
    // Limits the memory that an announced length reserves before the bytes arrive.
    constexpr std::uint64_t trusted = std::uint64_t{1024} * 1024;
    if (length) body.reserve(static_cast<std::size_t>(std::min(*length, trusted)));
  }
  std::size_t on_body_impl(beast::string_view bytes, Ec&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, Ec&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, Ec&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(Ec&) override {}
};

Error protocol_error(const Ec& failure, const Limits& limits) {
  if (failure == beast::http::error::header_limit)
    return Error(Errc::protocol, fmt::format("the HTTP headers are longer than {} bytes", limits.header));
  if (failure == beast::http::error::body_limit)
    return Error(Errc::protocol, fmt::format("the body is longer than {} bytes", limits.body.value_or(0)));
  return Error(Errc::protocol, "it is not valid HTTP/1.1 (" + failure.message() + ")");
}

// Returns whether the bytes are an incomplete last chunk. Beast 1.81 asserts that the last chunk of an empty body is
// complete once it has seen the chunk's first line, so feed() waits for all its bytes ("0\r\n\r\n"). This delays no
// byte of a body: a non-empty chunk that begins with '0' is longer.
template <class Parser>
bool is_piece_of_last_chunk(const Parser& parser, std::string_view bytes) {
  return parser.was_short && bytes.starts_with('0') && bytes.size() < std::string_view("0\r\n\r\n").size();
}

template <class Parser>
std::size_t feed(Parser& parser, std::string_view bytes, Ec& failure) {
  if (is_piece_of_last_chunk(parser, bytes)) return 0;
  const std::size_t used = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), failure);
  parser.was_short = failure == beast::http::error::need_more && used < bytes.size();
  if (failure == beast::http::error::need_more) failure = {};
  return used;
}

}  // namespace

class ResponseParser::Impl {
 public:
  explicit Impl(const Limits& limits) : parser(limits) {}
  Collector<false> parser;
  ResponseHead head;
};

ResponseParser::ResponseParser(Limits limits) : limits_(limits), impl_(std::make_unique<Impl>(limits_)) {}
ResponseParser::~ResponseParser() = default;

Result<std::size_t> ResponseParser::put(std::string_view bytes) {
  std::size_t used = 0;
  got_some_ = got_some_ || !bytes.empty();
  while (used < bytes.size() && !done()) {
    Ec failure;
    const bool had_head = head_done();
    const std::size_t taken = feed(impl_->parser, bytes.substr(used), failure);
    used += taken;
    if (failure) return protocol_error(failure, limits_);
    if (!had_head && head_done()) {
      // A status below 100 is an error, not an interim response that is skipped: Beast reads a body after its head, and
      // a body without a length lasts until the end of the connection. So the start of the final response cannot be
      // found.
      if (impl_->parser.status < 100)
        return Error(Errc::protocol,
                     fmt::format("it is not valid HTTP/1.1 (the status {:03} does not exist)", impl_->parser.status));
      if (impl_->parser.status == 101)
        return Error(Errc::protocol, "the server switched to a protocol that was not requested");
      if (impl_->parser.status < 200) {
        impl_ = std::make_unique<Impl>(limits_);
        continue;
      }
      impl_->head = ResponseHead{impl_->parser.status, std::move(impl_->parser.headers)};
    }
    if (taken == 0) break;
  }
  return used;
}

Result<> ResponseParser::put_eof() {
  Ec failure = beast::http::error::end_of_stream;
  if (impl_->parser.got_some() && !done()) impl_->parser.put_eof(failure);
  if (failure && !done()) return Error(Errc::reset, "the connection ended before the answer was complete");
  return {};
}

bool ResponseParser::head_done() const {
  return impl_->parser.is_header_done();
}
bool ResponseParser::done() const {
  return impl_->parser.is_done();
}
bool ResponseParser::keep_alive() const {
  return impl_->parser.keep_alive();
}
ResponseHead& ResponseParser::head() {
  return impl_->head;
}
std::string& ResponseParser::body() {
  return impl_->parser.body;
}

class RequestParser::Impl {
 public:
  explicit Impl(const Limits& given) : limits(given), parser(given) {}
  Limits limits;
  Collector<true> parser;
  Request request;
  bool too_large = false;
};

RequestParser::RequestParser(Limits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

Result<std::size_t> RequestParser::put(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && !done()) {
    Ec failure;
    const std::size_t taken = feed(impl_->parser, bytes.substr(used), failure);
    used += taken;
    impl_->too_large = failure == beast::http::error::body_limit;
    if (failure) return protocol_error(failure, impl_->limits);
    if (taken == 0) break;
  }
  auto& parser = impl_->parser;
  if (head_done() && impl_->request.headers.fields().empty()) {
    impl_->request.method = parser.method;
    impl_->request.target = parser.target;
    impl_->request.headers = std::move(parser.headers);
  }
  if (done()) impl_->request.body = std::move(parser.body);
  return used;
}

bool RequestParser::got_some() const {
  return impl_->parser.got_some();
}
bool RequestParser::head_done() const {
  return impl_->parser.is_header_done();
}
bool RequestParser::done() const {
  return impl_->parser.is_done();
}
bool RequestParser::keep_alive() const {
  return impl_->parser.keep_alive();
}
bool RequestParser::too_large() const {
  return impl_->too_large;
}
Request& RequestParser::request() {
  return impl_->request;
}

}  // namespace haulout::http
