// Tests the server with the project's own client and with raw sockets.
#include "certificates.hpp"
#include "io_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerTest : public IoTest {
 protected:
  // Returns all that the server sends after `bytes`, until it closes the connection or the text contains `enough`.
  asio::awaitable<std::string> say_raw(const http::Server& server, std::string bytes, std::string enough = "\x01") {
    tcp::socket socket(context);
    co_await socket.async_connect(tcp::endpoint(asio::ip::address_v4::loopback(), server.port()), asio::use_awaitable);
    co_await say(socket, std::move(bytes));
    std::string all;
    std::array<char, 4096> piece;
    while (all.find(enough) == std::string::npos) {
      const auto [failure, size] =
          co_await socket.async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
      if (failure) break;
      all.append(piece.data(), size);
    }
    co_return all;
  }
  static asio::awaitable<void> echo(http::Exchange& exchange) {
    const auto& request = exchange.request();
    http::Response response{200, {}, request.method + " " + request.target + " " + request.body};
    const auto sent = co_await exchange.reply(std::move(response));
    static_cast<void>(sent);
  }
};

TEST_F(ServerTest, AnswersWhatItWasAsked) {
  const auto server = serve({}, echo);
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      const auto response = co_await client->round_trip(post("/a?b=c", "body"), soon());
      EXPECT_TRUE(response && response->body == "POST /a?b=c body");
    }
  });
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  const auto server = serve({}, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto all = co_await say_raw(*server,
                                      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
                                      "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto one = all.find("GET /1");
    const auto two = all.find("GET /2");
    const auto three = all.find("GET /3");
    EXPECT_TRUE(one < two && two < three && three != std::string::npos) << all;
  });
}

TEST_F(ServerTest, SaysContinueWhenAsked) {
  const auto server = serve({}, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto all = co_await say_raw(
        *server, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", "\r\n\r\n");
    EXPECT_THAT(all, StartsWith("HTTP/1.1 100 Continue\r\n\r\n"));
  });
}

TEST_F(ServerTest, RefusesNonsenseAndWhatIsTooLarge) {
  http::ServerOptions options;
  options.body_limit = 10;
  const auto server = serve(options, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    EXPECT_THAT(co_await say_raw(*server, "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
    EXPECT_THAT(co_await say_raw(*server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n12345678901"),
                StartsWith("HTTP/1.1 413 "));
    EXPECT_THAT(co_await say_raw(*server, "GET / HTTP/1.1\r\nA: " + std::string(1'100'000, 'a')),
                StartsWith("HTTP/1.1 4"));
  });
}

TEST_F(ServerTest, ALargeRefusedBodyDoesNotHideTheAnswer) {
  http::ServerOptions options;
  options.body_limit = 10;
  const auto server = serve(options, echo);
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(post("/", std::string(2'000'000, 'x')), soon());
    EXPECT_TRUE(response && response->status == 413);
  });
}

TEST_F(ServerTest, NoContentHasNoLength) {
  const auto server = serve({}, [](http::Exchange& exchange) -> asio::awaitable<void> {
    http::Response response{204, {}, ""};
    EXPECT_TRUE(co_await exchange.reply(std::move(response)));
  });
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(response && response->status == 204 && !response->headers.find("Content-Length"));
  });
}

TEST_F(ServerTest, StreamsChunkByChunk) {
  http::Exchange* current = nullptr;
  const auto server = serve({}, [&](http::Exchange& exchange) -> asio::awaitable<void> {
    http::ResponseHead head{200, {}};
    head.headers.add("Content-Type", "application/json");
    EXPECT_TRUE(co_await exchange.start_stream(std::move(head)));
    current = &exchange;
    while (current != nullptr) co_await asio::post(asio::use_awaitable);
    EXPECT_TRUE(co_await exchange.end());
  });
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/"), soon());
    EXPECT_TRUE(stream && (*stream)->head().headers.find("content-type") == "application/json");
    while (current == nullptr) co_await asio::post(asio::use_awaitable);
    for (const std::string event : {"one", "", "two"}) {
      EXPECT_TRUE(co_await current->write(event));
      if (event.empty()) continue;  // an empty piece does not end the body, and the client has nothing to read
      const auto piece = co_await (*stream)->read_some(soon());
      EXPECT_TRUE(piece && *piece == event);
    }
    current = nullptr;
    const auto end = co_await (*stream)->read_some(soon());
    EXPECT_TRUE(end && end->empty());
  });
}

TEST_F(ServerTest, AStreamThatHasEndedLeavesItsConnectionToTheNextRequest) {
  const auto server = serve({}, [](http::Exchange& exchange) -> asio::awaitable<void> {
    if (exchange.request().target != "/stream") co_return co_await echo(exchange);
    EXPECT_TRUE(co_await exchange.start_stream({200, {}}));
    EXPECT_TRUE(co_await exchange.write("some"));
    EXPECT_TRUE(co_await exchange.end());
  });
  run_with(*server, [&]() -> asio::awaitable<void> {
    const auto all = co_await say_raw(*server,
                                      "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
                                      "GET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(all, HasSubstr("4\r\nsome\r\n0\r\n\r\n"));
    EXPECT_THAT(all, HasSubstr("GET /next"));
  });
}

TEST_F(ServerTest, AbortAndNoAnswerAreResetsForTheClient) {
  const auto server = serve({}, [](http::Exchange& exchange) -> asio::awaitable<void> {
    if (exchange.request().target == "/silent") co_return;
    if (exchange.request().target == "/half") {
      EXPECT_TRUE(co_await exchange.start_stream({200, {}}));
      EXPECT_TRUE(co_await exchange.write("half"));
    }
    exchange.abort();
    http::Response response{200, {}, "too late"};
    EXPECT_EQ(code_of(co_await exchange.reply(std::move(response))), Errc::reset);
  });
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    for (const std::string target : {"/silent", "/half", "/abort"})
      EXPECT_EQ(code_of(co_await client->round_trip(get(target), soon())), Errc::reset) << target;
  });
}

TEST_F(ServerTest, ARequestIsServedOnceWhenTheConnectionBreaks) {
  int seen = 0;
  const auto server = serve({}, [&](http::Exchange& exchange) -> asio::awaitable<void> {
    ++seen;
    if (exchange.request().method == "POST") {
      exchange.abort();
      co_return;
    }
    co_await echo(exchange);
  });
  auto client = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_EQ(code_of(co_await client->round_trip(post("/", "once"), soon())), Errc::reset);
    EXPECT_EQ(seen, 2);
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_EQ(code_of(co_await client->round_trip(post("/", "twice", true), soon())), Errc::reset);
    EXPECT_EQ(seen, 5);
  });
}

TEST_F(ServerTest, StoppingCancelsHandlersAndClosesConnections) {
  bool handling = false;
  bool unwound = false;
  const auto server = serve({}, [&](http::Exchange&) -> asio::awaitable<void> {
    struct OnExit {
      bool& flag;
      ~OnExit() { flag = true; }
    } on_exit{unwound};
    handling = true;
    co_await clock.sleep_until(TimePoint::max());
  });
  auto client = plain_client(server->port());
  run_with({}, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      const auto serving = group.spawn(server->run());
      group.spawn([](http::Client& asking, TimePoint deadline) -> asio::awaitable<void> {
        EXPECT_EQ(code_of(co_await asking.round_trip(get("/"), deadline)), Errc::reset);
      }(*client, soon()));
      while (!handling) co_await asio::post(asio::use_awaitable);
      group.cancel(serving);
      co_await group.join();
    });
  });
  EXPECT_TRUE(unwound);
}

TEST_F(ServerTest, AConnectionWithoutAWholeRequestIsClosedInTime) {
  http::ServerOptions options;
  options.idle_timeout = 20ms;
  options.request_timeout = 20ms;
  const auto server = serve(options, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(co_await say_raw(*server, ""), "");
    EXPECT_EQ(co_await say_raw(*server, "GET / HTTP/1.1\r\nHost: x\r\n"), "");
    EXPECT_EQ(co_await say_raw(*server, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"), "");
    EXPECT_THAT(co_await say_raw(*server, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("GET /1"))
        << "and closed while it is idle";
  });
}

TEST_F(ServerTest, WhoSendsAByteNowAndThenGainsNoTime) {
  http::ServerOptions options;
  options.request_timeout = 20ms;
  const auto server = serve(options, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    tcp::socket socket(context);
    co_await socket.async_connect(tcp::endpoint(asio::ip::address_v4::loopback(), server->port()), asio::use_awaitable);
    co_await say(socket, "GET / HTTP/1.1\r\nA: ");
    const TimePoint limit = soon();
    bool closed = false;
    while (!closed && clock.now() < limit) {
      const auto [failure, sent] =
          co_await asio::async_write(socket, asio::buffer("a", 1), asio::as_tuple(asio::use_awaitable));
      closed = static_cast<bool>(failure);
    }
    EXPECT_TRUE(closed);
  });
}

TEST_F(ServerTest, AnAnswerThatNobodyReadsIsGivenUp) {
  http::ServerOptions options;
  options.send_timeout = 20ms;
  bool given_up = false;
  const auto server = serve(options, [&](http::Exchange& exchange) -> asio::awaitable<void> {
    http::Response response{200, {}, std::string(50'000'000, 'x')};
    EXPECT_EQ(code_of(co_await exchange.reply(std::move(response))), Errc::timeout);
    given_up = true;
  });
  run_with(*server, [&]() -> asio::awaitable<void> {
    tcp::socket socket(context);
    co_await socket.async_connect(tcp::endpoint(asio::ip::address_v4::loopback(), server->port()), asio::use_awaitable);
    co_await say(socket, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    while (!given_up) co_await asio::post(asio::use_awaitable);
  });
}

TEST_F(ServerTest, MoreConnectionsThanTheLimitAreClosedWhileAllAreServed) {
  http::ServerOptions options;
  options.max_connections = 2;
  int serving = 0;
  bool finish = false;
  const auto server = serve(options, [&](http::Exchange& exchange) -> asio::awaitable<void> {
    ++serving;
    while (!finish) co_await asio::post(asio::use_awaitable);
    co_await echo(exchange);
  });
  auto third = plain_client(server->port());
  run_with(*server, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      const auto ask = [](http::Client& client, TimePoint deadline) -> asio::awaitable<void> {
        EXPECT_TRUE(co_await client.round_trip(get("/"), deadline));
      };
      auto first = plain_client(server->port());
      auto second = plain_client(server->port());
      group.spawn(ask(*first, soon()));
      group.spawn(ask(*second, soon()));
      while (serving < 2) co_await asio::post(asio::use_awaitable);
      EXPECT_EQ(code_of(co_await third->round_trip(get("/"), soon())), Errc::reset);
      finish = true;
      co_await group.join();
    });
    EXPECT_TRUE(co_await third->round_trip(get("/"), soon())) << "the others are idle";
  });
}

// When a new connection exceeds the limit, the server closes the connection on whose request it has waited longest.
// Silent connections must not keep others out.
TEST_F(ServerTest, TheConnectionThatWasWaitedForLongestGivesWay) {
  http::ServerOptions options;
  options.max_connections = 2;
  const auto server = serve(options, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    const tcp::endpoint address(asio::ip::address_v4::loopback(), server->port());
    tcp::socket silent(context), half(context);
    co_await silent.async_connect(address, asio::use_awaitable);
    co_await half.async_connect(address, asio::use_awaitable);
    co_await say(half, "GET / HTTP/1.1\r\n");
    EXPECT_THAT(co_await say_raw(*server, "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /1"), HasSubstr("GET /1"));
    char byte = 0;
    const auto [closed, none] =
        co_await silent.async_read_some(asio::buffer(&byte, 1), asio::as_tuple(asio::use_awaitable));
    EXPECT_TRUE(closed);
    co_await say(half, "Host: x\r\n\r\n");
    std::string answer(8, ' ');
    co_await asio::async_read(half, asio::buffer(answer), asio::use_awaitable);
    EXPECT_EQ(answer, "HTTP/1.1") << "it came later";
  });
}

TEST_F(ServerTest, AHeadBeyondTheLimitIsRefused) {
  http::ServerOptions options;
  options.head_limit = 4096;
  const auto server = serve(options, echo);
  run_with(*server, [&]() -> asio::awaitable<void> {
    EXPECT_THAT(co_await say_raw(*server, "GET / HTTP/1.1\r\nA: " + std::string(5000, 'a') + "\r\n\r\n"),
                StartsWith("HTTP/1.1 4"));
    EXPECT_THAT(co_await say_raw(*server, "GET / HTTP/1.1\r\nA: " + std::string(70'000, 'a')), StartsWith("HTTP/1.1 4"))
        << "that never ends";
    EXPECT_THAT(co_await say_raw(*server, "GET / HTTP/1.1\r\nA: " + std::string(3000, 'a') + "\r\n\r\n", "GET / "),
                HasSubstr("GET / "));
  });
}

TEST_F(ServerTest, BadAddressesAndBadPem) {
  const auto listen = [&](http::ServerOptions options) {
    return http::Server::listen(context.get_executor(), clock, std::move(options), echo);
  };
  const auto first = serve({}, echo);
  http::ServerOptions taken;
  taken.port = first->port();
  EXPECT_EQ(code_of(listen(taken)), Errc::unavailable);
  http::ServerOptions nonsense;
  nonsense.address = "nonsense";
  EXPECT_EQ(code_of(listen(nonsense)), Errc::unavailable);
  http::ServerOptions tls;
  tls.tls = true;
  EXPECT_EQ(code_of(listen(tls)), Errc::tls);
}

}  // namespace
}  // namespace haulout::testing
