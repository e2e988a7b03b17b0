#include "http/client.hpp"

#include <fmt/format.h>

#include "http/conversation.hpp"
#include "http/pool.hpp"
#include "retry/deadline.hpp"

namespace haulout::http {
namespace asio = boost::asio;

class Client::Impl {
 public:
  Impl(Clock& clock_of_all, Endpoint to, ClientOptions with)
      : clock(clock_of_all), endpoint(std::move(to)), options(with), pool(with.max_idle, with.idle_timeout) {}

  // Sends the request and returns once the head of the response has arrived. The caller reads the body from the
  // Conversation.
  Task<std::unique_ptr<Conversation>> converse(const Request& request, std::optional<std::uint64_t> body_limit,
                                               Progress* progress);
  Task<Response> exchange(const Request& request, Progress* progress);
  // Puts the connection back into the pool if the response is complete and the connection can carry another request.
  void recycle(Conversation& conversation) {
    if (auto wire = conversation.release()) pool.put(std::move(wire), conversation.generation(), clock.now());
  }
  // Completes the error of an operation: adds the request to a protocol error, and the phase that the operation had
  // reached to a timeout. After a timeout on an open connection the peer may be unreachable, so this closes the
  // connections that were idle when the request began: they may be dead, too.
  template <class T>
  Result<T> judge(Result<T> result, const std::string& request, const Progress& progress, TimePoint began) {
    if (!result && result.error().code() == Errc::protocol) return std::move(result).error().with_context(request);
    if (result || result.error().code() != Errc::timeout) return result;
    proven_.reset();
    if (progress.phase == Phase::send || progress.phase == Phase::answer) pool.drop_idle_since(began);
    return Error(Errc::timeout,
                 fmt::format("no answer from {} before the deadline: {}", peer_name(endpoint), in_words(progress)));
  }

  Clock& clock;
  Endpoint endpoint;
  std::shared_ptr<TlsContext> tls;
  ClientOptions options;
  Pool pool;

 private:
  // One response's share of `bodies_limit`, which all responses share. The destructor releases the bytes.
  class Share {
   public:
    explicit Share(std::size_t& all) : all_(all) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { all_ -= bytes_; }
    void grow_to(std::size_t bytes) {
      all_ += bytes - bytes_;
      bytes_ = bytes;
    }

   private:
    std::size_t& all_;
    std::size_t bytes_ = 0;
  };

  Task<std::unique_ptr<Conversation>> fresh(const std::string& bytes, Limits limits, Progress* progress);
  Task<std::unique_ptr<Conversation>> start_on_new_wire(const std::string& bytes, Limits limits, Progress* progress,
                                                        std::optional<asio::ip::address>* address);

  // The address, of the server or the proxy, of the last new connection that received a response. The next connection
  // tries it first.
  std::optional<asio::ip::address> proven_;
  std::size_t bodies_ = 0;  // total size of the bodies that are being read now
};

namespace {

// Returns the method and the path for messages. Leaves out the query, which would make them unreadable.
std::string name_of(const Request& request) {
  return request.method + " " + request.target.substr(0, request.target.find('?'));
}

class ClientStream final : public BodyStream {
 public:
  ClientStream(std::unique_ptr<Conversation> conversation, Clock& clock, std::string peer,
               std::function<void(Conversation&)> recycle)
      : head_(std::move(conversation->parser().head())),
        conversation_(std::move(conversation)),
        clock_(clock),
        peer_(std::move(peer)),
        recycle_(std::move(recycle)) {}

  const ResponseHead& head() const override { return head_; }

  Task<std::string> read_some(TimePoint deadline) override {
    if (!conversation_)
      co_return Error(Errc::reset,
                      "the answer of " + peer_ + " cannot be read any further, because reading it has failed before");
    SpentUnless succeeded(conversation_);
    auto& parser = conversation_->parser();
    if (parser.body().empty() && !parser.done()) {
      const auto read = co_await with_deadline(clock_, deadline, read_until_something(*conversation_));
      if (!read && read.error().code() == Errc::timeout)
        co_return Error(Errc::timeout, "nothing more was received from " + peer_ + " before the deadline");
      if (!read) co_return read.error();
    }
    read_on();  // undoes hold_back(): the next user of this connection expects to be woken by every byte
    if (parser.done()) recycle_(*conversation_);
    succeeded.keep();
    co_return std::exchange(parser.body(), {});
  }

  bool hold_back() override {
    held_ = conversation_ && conversation_->hold_back();
    return held_;
  }
  void read_on() override {
    if (std::exchange(held_, false) && conversation_) conversation_->read_on();
  }

 private:
  // Scope guard. If keep() was not called, the operation has failed or was cancelled, and the destructor closes the
  // connection of the stream.
  class SpentUnless {
   public:
    explicit SpentUnless(std::unique_ptr<Conversation>& conversation) : conversation_(&conversation) {}
    SpentUnless(const SpentUnless&) = delete;
    SpentUnless& operator=(const SpentUnless&) = delete;
    ~SpentUnless() {
      if (conversation_) conversation_->reset();
    }
    void keep() { conversation_ = nullptr; }

   private:
    std::unique_ptr<Conversation>* conversation_;
  };

  static Task<> read_until_something(Conversation& conversation) {
    while (conversation.parser().body().empty() && !conversation.parser().done())
      CO_CHECK(co_await conversation.advance());
    co_return Result<>();
  }

  ResponseHead head_;
  std::unique_ptr<Conversation> conversation_;
  Clock& clock_;
  std::string peer_;
  std::function<void(Conversation&)> recycle_;
  bool held_ = false;
};

}  // namespace

Task<std::unique_ptr<Conversation>> Client::Impl::start_on_new_wire(const std::string& bytes, Limits limits,
                                                                    Progress* progress,
                                                                    std::optional<asio::ip::address>* address) {
  const auto generation = pool.generation();
  CO_TRY(auto wire, co_await dial(clock, endpoint, tls, options, progress, address));
  auto conversation = std::make_unique<Conversation>(std::move(wire), generation, peer_name(endpoint), limits);
  CO_CHECK(co_await conversation->start(bytes, &progress->phase));
  co_return conversation;
}

Task<std::unique_ptr<Conversation>> Client::Impl::fresh(const std::string& bytes, Limits limits, Progress* progress) {
  auto address = proven_;
  auto started = co_await start_on_new_wire(bytes, limits, progress, &address);
  proven_ = started ? address : std::nullopt;
  co_return started;
}

Task<std::unique_ptr<Conversation>> Client::Impl::converse(const Request& request,
                                                           std::optional<std::uint64_t> body_limit,
                                                           Progress* progress) {
  CO_TRY(const std::string bytes, serialize(request, endpoint.authority()));
  const Limits limits{options.header_limit, body_limit};
  if (auto wire = pool.take(clock.now())) {
    auto conversation = std::make_unique<Conversation>(std::move(wire), pool.generation(), peer_name(endpoint), limits);
    const auto started = co_await conversation->start(bytes, &progress->phase);
    if (started) co_return conversation;
    // The server may have closed the idle connection before it received the request. A repeatable request is then sent
    // again on a new connection; for any other, the error is returned.
    const bool was_stale = started.error().code() == Errc::reset && !conversation->parser().got_some();
    if (!was_stale || !request.repeatable) co_return started.error();
    auto again = co_await fresh(bytes, limits, progress);
    if (!again && (again.error().code() == Errc::unreachable || again.error().code() == Errc::dns))
      co_return Error(Errc::reset,
                      started.error().message() + "; the next attempt failed, too: " + again.error().message());
    co_return again;
  }
  co_return co_await fresh(bytes, limits, progress);
}

Task<Response> Client::Impl::exchange(const Request& request, Progress* progress) {
  CO_TRY(const auto conversation, co_await converse(request, options.body_limit, progress));
  auto& parser = conversation->parser();
  Share share(bodies_);
  for (;;) {
    share.grow_to(parser.body().size());
    if (bodies_ > options.bodies_limit)
      co_return Error(Errc::protocol, fmt::format("the answer of {} cannot be used: together with other answers that "
                                                  "are being received it is longer than {} bytes",
                                                  peer_name(endpoint), options.bodies_limit));
    if (parser.done()) break;
    CO_CHECK(co_await conversation->advance());
  }
  Response response{parser.head().status, std::move(parser.head().headers), std::move(parser.body())};
  recycle(*conversation);
  co_return response;
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::create(asio::any_io_executor, Clock& clock, Endpoint endpoint, TlsOptions tls,
                                               ClientOptions options) {
  auto impl = std::make_unique<Impl>(clock, std::move(endpoint), options);
  std::unique_ptr<Client> client(new Client(std::move(impl)));
  if (auto set = client->set_tls(std::move(tls)); !set) return std::move(set).error();
  return client;
}

Task<Response> Client::round_trip(Request request, TimePoint deadline) {
  const TimePoint began = impl_->clock.now();
  Progress progress;
  auto result = co_await with_deadline(impl_->clock, deadline, impl_->exchange(request, &progress));
  co_return impl_->judge(std::move(result), name_of(request), progress, began);
}

Task<std::unique_ptr<BodyStream>> Client::open(Request request, TimePoint deadline) {
  const TimePoint began = impl_->clock.now();
  Progress progress;
  auto started = co_await with_deadline(impl_->clock, deadline, impl_->converse(request, std::nullopt, &progress));
  CO_TRY(auto conversation, impl_->judge(std::move(started), name_of(request), progress, began));
  impl_->recycle(*conversation);
  co_return std::make_unique<ClientStream>(std::move(conversation), impl_->clock, peer_name(impl_->endpoint),
                                           [impl = impl_.get()](Conversation& done) { impl->recycle(done); });
}

Result<> Client::set_tls(TlsOptions tls) {
  if (impl_->endpoint.kind != Endpoint::Kind::tls) return {};
  auto context = TlsContext::for_client(tls);
  if (!context) return std::move(context).error();
  impl_->tls = *std::move(context);
  impl_->pool.clear();
  return {};
}

const Endpoint& Client::endpoint() const {
  return impl_->endpoint;
}

}  // namespace haulout::http
