// Tests keep-alive, stale connections, deadlines and cancellation, over plain TCP against scripted peers.
#include "io_fixture.hpp"
#include "retry/notifier.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class ClientTest : public IoTest {};

TEST_F(ClientTest, ReusesItsConnection) {
  ScriptedPeer peer(context, {always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 20; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_TRUE(response && response->status == 200 && response->body == "ok");
    }
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(ClientTest, ClosesWhatIsIdleTooLong) {
  ScriptedPeer peer(context, {always(ok)});
  http::ClientOptions options;
  options.idle_timeout = 0s;
  auto client = plain_client(peer.port(), options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_EQ(peer.connections(), 3);
}

TEST_F(ClientTest, KeepsNoMoreThanMaxIdle) {
  ScriptedPeer peer(context, {always(ok)});
  http::ClientOptions options;
  options.max_idle = 0;
  auto client = plain_client(peer.port(), options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_EQ(peer.connections(), 3);
}

TEST_F(ClientTest, AConnectionThatTheServerClosesIsNotReused) {
  ScriptedPeer peer(context,
                    {always("HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_TRUE(response && response->status == 429);
    }
  });
  EXPECT_EQ(peer.connections(), 2);
}

TEST_F(ClientTest, AnIdleConnectionThatWasClosedIsNoticedBeforeTheRequest) {
  ScriptedPeer peer(context, {once(ok), once(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    // Lets the client receive the end of the connection, which the peer has closed.
    co_await asio::post(context, asio::use_awaitable);
    co_await asio::post(context, asio::use_awaitable);
    EXPECT_TRUE(co_await client->round_trip(post("/", "not repeatable"), soon()));
  });
  EXPECT_EQ(peer.connections(), 2);
}

// The server closes the connection after the client has sent the request. A check of the socket before the request
// cannot detect that.
ScriptedPeer::Script answer_once_then_drop_the_next_request() {
  return [](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, ok);
    co_await read_head(socket);
  };
}

TEST_F(ClientTest, AStaleConnectionIsRetriedOnceForRepeatableRequests) {
  ScriptedPeer peer(context, {answer_once_then_drop_the_next_request(), always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_EQ(peer.connections(), 2);
}

TEST_F(ClientTest, AStaleConnectionIsAFailureForUnrepeatableRequests) {
  ScriptedPeer peer(context, {answer_once_then_drop_the_next_request(), always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_EQ(code_of(co_await client->round_trip(post("/", ""), soon())), Errc::reset);
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(ClientTest, AFreshConnectionIsNotRetried) {
  ScriptedPeer peer(context, {[](Socket& socket) -> asio::awaitable<void> { co_await read_head(socket); }});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::reset);
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(ClientTest, NothingIsRetriedOnceTheAnswerHasBegun) {
  const auto second_is_cut = [](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, ok);
    co_await read_head(socket);
    co_await say(socket, "HTTP/1.1 2");
  };
  ScriptedPeer peer(context, {second_is_cut, always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::reset);
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(ClientTest, HalfABodyIsAReset) {
  ScriptedPeer peer(context, {once("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
                              once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::reset);
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::reset);
  });
}

TEST_F(ClientTest, ABodyMayEndWithTheConnection) {
  ScriptedPeer peer(context,
                    {once("HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    const auto response = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(response && response->status == 400);
    EXPECT_EQ(response->body, "Client sent an HTTP request to an HTTPS server.\n");
  });
}

TEST_F(ClientTest, InterimAnswersAndEmptyOnes) {
  ScriptedPeer peer(context, {always("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nX: y\r\n\r\n")});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      EXPECT_TRUE(response && response->status == 204 && response->body.empty());
    }
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(ClientTest, LimitsOfHeadAndBody) {
  ScriptedPeer peer(context, {once("HTTP/1.1 200 OK\r\nA: " + std::string(2000, 'a') + "\r\n\r\n"),
                              once("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'b')),
                              once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n"),
                              once("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + std::string(100, 'b'))});
  http::ClientOptions options;
  options.header_limit = 1000;
  options.body_limit = 100;
  auto client = plain_client(peer.port(), options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::protocol);
    const auto fits = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(fits && fits->body.size() == 100);
  });
}

TEST_F(ClientTest, AnAnswerThatIsTooLongNamesRequestAndLimit) {
  ScriptedPeer peer(context, {once("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'b'))});
  http::ClientOptions options;
  options.body_limit = 100;
  auto client = plain_client(peer.port(), options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    const auto answer = co_await client->round_trip(get("/api/v1/pods?limit=500"), soon());
    EXPECT_EQ(code_of(answer), Errc::protocol);
    EXPECT_TRUE(answer.error().message().starts_with("GET /api/v1/pods: ")) << answer.error().message();
    EXPECT_TRUE(answer.error().message().ends_with(" 100 bytes")) << answer.error().message();
  });
}

// P12: no body is longer than its limit, but the bodies that the client reads at the same time exceed their common
// limit.
TEST_F(ClientTest, AnswersAtOnceHaveOneLimit) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: ";
  const auto half = [&](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, head + "100\r\n\r\n" + std::string(60, 'a'));
    co_await wait_for_end(socket);
  };
  ScriptedPeer peer(context, {half, always(head + "60\r\n\r\n" + std::string(60, 'b'))});
  http::ClientOptions options;
  options.body_limit = options.bodies_limit = 100;
  auto client = plain_client(peer.port(), options);
  const auto ask = [&]() -> asio::awaitable<void> {
    const auto never = co_await client->round_trip(get("/half"), soon());
  };
  run_with(peer, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(ask());
      while (peer.connections() == 0) co_await asio::post(context, asio::use_awaitable);
      auto answer = co_await client->round_trip(get("/whole"), soon());
      // Repeats the request until the client has read the first half of the other body.
      while (answer) answer = co_await client->round_trip(get("/whole"), soon());
      EXPECT_EQ(answer.error().code(), Errc::protocol);
      EXPECT_TRUE(answer.error().message().starts_with("GET /whole: ")) << answer.error().message();
    });
    // A body that was given up does not count against the limit.
    EXPECT_TRUE(co_await client->round_trip(get("/whole"), soon()));
  });
}

TEST_F(ClientTest, WhatIsNotHttp) {
  ScriptedPeer peer(context, {once("SSH-2.0-OpenSSH_9.2\r\n\r\n"), once(std::string("\x15\x03\x01\x00\x02\x02\x46", 7)),
                              once(ok + "and something nobody asked for"), always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(code_of(co_await client->round_trip(get("/"), soon())), Errc::protocol);
    // A connection on which bytes follow the response is not used for another request.
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_EQ(peer.connections(), 4);
}

TEST_F(ClientTest, ARequestThatWouldBreakTheFramingIsNotSent) {
  ScriptedPeer peer(context, {always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    auto request = get("/");
    request.headers.add("Authorization", "Bearer x\n");
    EXPECT_EQ(code_of(co_await client->round_trip(std::move(request), soon())), Errc::invalid);
  });
  EXPECT_EQ(peer.connections(), 0);
}

TEST_F(ClientTest, TheDeadlineBoundsAnAnswerThatNeverComes) {
  ScriptedPeer peer(context, {wait_for_end});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), in(20ms))), Errc::timeout);
    EXPECT_EQ(code_of(co_await client->open(get("/"), in(20ms))), Errc::timeout);
  });
  EXPECT_EQ(peer.connections(), 2);
}

TEST_F(ClientTest, ALateAnswerIsNotTakenForTheNextOne) {
  // The client does not use a connection again on which a deadline has passed. So it cannot take a late response for
  // the response to its next request.
  Notifier late(context.get_executor());
  const auto answers_late = [&](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await late.wait_until(clock, soon());
    co_await say(socket, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    co_await wait_for_end(socket);
  };
  ScriptedPeer peer(context, {answers_late, always(ok)});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), in(20ms))), Errc::timeout);
    late.notify();
    const auto next = co_await client->round_trip(get("/"), soon());
    EXPECT_TRUE(next && next->body == "ok");
  });
  EXPECT_EQ(peer.connections(), 2);
}

// A control plane that loses power sends nothing. If the client tried each idle connection again, each would cost it a
// deadline.
TEST_F(ClientTest, WhatWasIdleBeforeATimeoutIsNotTriedAgain) {
  const auto then_mute = [](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, ok);
    co_await wait_for_end(socket);
  };
  ScriptedPeer peer(context, {then_mute, then_mute, then_mute, always(ok)});
  auto client = plain_client(peer.port());
  const auto ask = [&]() -> asio::awaitable<void> { EXPECT_TRUE(co_await client->round_trip(get("/"), soon())); };
  run_with(peer, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      for (int i = 0; i < 3; ++i) group.spawn(ask());
      co_await group.join();
    });
    EXPECT_EQ(peer.connections(), 3);
    EXPECT_EQ(code_of(co_await client->round_trip(get("/"), in(20ms))), Errc::timeout);
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_EQ(peer.connections(), 4);
}

// The server may have carried out a request that was sent, so its failure is `reset`. Only a request that was never
// sent fails with `unreachable`.
TEST_F(ClientTest, ARequestThatWasSentOnceIsNotCalledUnreachable) {
  tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const auto address = acceptor.local_endpoint();
  tcp::socket occupied(context, tcp::v4());
  const auto serve_once = [&]() -> asio::awaitable<void> {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    acceptor.close();
    // Prevents another process from listening on this port.
    occupied.set_option(tcp::socket::reuse_address(true));
    occupied.bind(address);
    co_await answer_once_then_drop_the_next_request()(socket);
  };
  auto client = plain_client(address.port());
  run_with({serve_once}, [&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
    EXPECT_EQ(code_of(co_await client->round_trip(post("/", "", true), soon())), Errc::reset);
    EXPECT_EQ(code_of(co_await client->round_trip(post("/", "", true), soon())), Errc::unreachable);
  });
}

TEST_F(ClientTest, CancellationUnwindsAndClosesTheConnection) {
  bool request_seen = false;
  bool closed = false;
  TaskGroup* requests = nullptr;
  const auto until_closed = [&](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    request_seen = true;
    requests->cancel();
    std::array<char, 16> rest;
    const auto [failure, bytes] =
        co_await socket.async_read_some(asio::buffer(rest), asio::as_tuple(asio::use_awaitable));
    closed = failure == asio::error::eof || failure == asio::error::connection_reset;
  };
  ScriptedPeer peer(context, {until_closed, always(ok)});
  auto client = plain_client(peer.port());
  bool returned = false;
  const auto ask = [&]() -> asio::awaitable<void> {
    const auto ignored = co_await client->round_trip(get("/"), soon());
    returned = true;
  };
  run_with(peer, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      requests = &group;
      group.spawn(ask());
      co_await group.join();
    });
    while (!closed) co_await asio::post(context, asio::use_awaitable);
    EXPECT_TRUE(co_await client->round_trip(get("/"), soon()));
  });
  EXPECT_TRUE(request_seen);
  EXPECT_TRUE(closed);
  EXPECT_FALSE(returned);
  EXPECT_EQ(peer.connections(), 2);
}

TEST_F(ClientTest, ManyAtOnce) {
  ScriptedPeer peer(context, {always(ok)});
  auto client = plain_client(peer.port());
  int answered = 0;
  const auto ask = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 10; ++i) {
      const auto response = co_await client->round_trip(get("/"), soon());
      answered += response && response->body == "ok" ? 1 : 0;
    }
  };
  run_with(peer, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      for (int i = 0; i < 10; ++i) group.spawn(ask());
      co_await group.join();
    });
  });
  EXPECT_EQ(answered, 100);
  EXPECT_LE(peer.connections(), 10);
}

}  // namespace
}  // namespace haulout::testing
