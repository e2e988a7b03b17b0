// Tests response bodies that the client reads as they arrive.
#include <fmt/format.h>

#include "io_fixture.hpp"

namespace haulout::testing {
namespace {

using namespace std::chrono_literals;

const std::string chunked_head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

// Sends `text` in pieces of `step` bytes, one packet each.
ScriptedPeer::Script in_pieces(std::string text, std::size_t step) {
  return [text, step](Socket& socket) -> asio::awaitable<void> {
    socket.set_option(tcp::no_delay(true));
    while (true) {
      co_await read_head(socket);
      for (std::size_t at = 0; at < text.size(); at += step) co_await say(socket, text.substr(at, step));
    }
  };
}

class StreamTest : public IoTest {
 protected:
  // Reads the body until its regular end.
  Task<std::string> read_all(http::BodyStream& stream) {
    std::string all;
    while (true) {
      CO_TRY(const std::string piece, co_await stream.read_some(soon()));
      if (piece.empty()) co_return all;
      all += piece;
    }
  }
};

class WatchCutAt : public StreamTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(WatchCutAt, DeliversEveryByte) {
  std::string events;
  std::string body = chunked_head;
  // The events have very different sizes. The chunks ignore the boundaries of the events, as those of a proxy may.
  for (std::size_t i = 0; i < 60; ++i)
    events += fmt::format("{{\"event\":{},\"pad\":\"{}\"}}\n", i, std::string(i * i * 3 % 5000, 'x'));
  for (std::size_t at = 0, size = 1; at < events.size(); at += size, size = size * 7 % 4099 + 1)
    body += chunk(events.substr(at, size));
  body += "0\r\n\r\n";
  ScriptedPeer peer(context, {in_pieces(body, GetParam())});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      auto stream = co_await client->open(get("/watch"), soon());
      EXPECT_TRUE(stream);
      const auto all = co_await read_all(**stream);
      EXPECT_TRUE(all && *all == events);
      // Another read after the end returns the end again.
      const auto again = co_await (*stream)->read_some(soon());
      EXPECT_TRUE(again && again->empty());
    }
  });
  EXPECT_EQ(peer.connections(), 1) << "a body read to its end gives its connection back";
}

INSTANTIATE_TEST_SUITE_P(Steps, WatchCutAt, ::testing::Values(17, 100, 4096, 1'000'000));

TEST_F(StreamTest, EachEventArrivesWithoutWaitingForTheNext) {
  const auto one_event = [](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, chunked_head);
    co_await say(socket, chunk("event 0\n"));
    co_await wait_for_end(socket);
  };
  ScriptedPeer peer(context, {one_event});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/watch"), soon());
    EXPECT_TRUE(stream);
    const auto first = co_await (*stream)->read_some(soon());
    EXPECT_TRUE(first && *first == "event 0\n");
    // Silence causes a timeout. After that the stream cannot be used any more.
    EXPECT_EQ(code_of(co_await (*stream)->read_some(in(10ms))), Errc::timeout);
    EXPECT_EQ(code_of(co_await (*stream)->read_some(soon())), Errc::reset);
  });
}

TEST_F(StreamTest, WhatIsHeldBackComesAtLast) {
  const auto says_one_by_one = [](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, chunked_head);
    for (int i = 0; i < 20; ++i) co_await say(socket, chunk(fmt::format("event {}\n", i)));
    co_await wait_for_end(socket);
  };
  ScriptedPeer peer(context, {says_one_by_one});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/watch"), soon());
    EXPECT_TRUE(stream);
    std::string all;
    while (!all.ends_with("event 19\n")) {
      (*stream)->hold_back();
      const auto alarm = clock.set_alarm(context.get_executor(), clock.now() + 5ms, [&] { (*stream)->read_on(); });
      const auto piece = co_await (*stream)->read_some(soon());
      EXPECT_TRUE(piece && !piece->empty());
      if (!piece || piece->empty()) co_return;
      all += *piece;
    }
    EXPECT_TRUE(all.starts_with("event 0\nevent 1\n"));
  });
}

TEST_F(StreamTest, AFailureStatusIsAStreamToo) {
  ScriptedPeer peer(context, {always("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone")});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 2; ++i) {
      auto stream = co_await client->open(get("/watch"), soon());
      EXPECT_TRUE(stream && (*stream)->head().status == 410);
      const auto all = co_await read_all(**stream);
      EXPECT_TRUE(all && *all == "gone");
    }
  });
  EXPECT_EQ(peer.connections(), 1);
}

TEST_F(StreamTest, AnEndWithoutTheLastChunkIsAReset) {
  ScriptedPeer peer(context, {once(chunked_head + chunk("event\n"))});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/watch"), soon());
    EXPECT_TRUE(stream);
    const auto first = co_await (*stream)->read_some(soon());
    EXPECT_TRUE(first && *first == "event\n");
    EXPECT_EQ(code_of(co_await (*stream)->read_some(soon())), Errc::reset);
  });
}

TEST_F(StreamTest, AStreamHasNoBodyLimit) {
  http::ClientOptions options;
  options.body_limit = 10;
  ScriptedPeer peer(context, {in_pieces(chunked_head + chunk(std::string(100, 'x')) + "0\r\n\r\n", 4096)});
  auto client = plain_client(peer.port(), options);
  run_with(peer, [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/watch"), soon());
    EXPECT_TRUE(stream);
    const auto all = co_await read_all(**stream);
    EXPECT_TRUE(all && all->size() == 100);
  });
}

TEST_F(StreamTest, DroppingAStreamClosesItsConnection) {
  bool closed = false;
  const auto endless = [&](Socket& socket) -> asio::awaitable<void> {
    co_await read_head(socket);
    co_await say(socket, chunked_head + chunk("event\n"));
    std::array<char, 16> rest;
    const auto [failure, bytes] =
        co_await socket.async_read_some(asio::buffer(rest), asio::as_tuple(asio::use_awaitable));
    closed = failure == asio::error::eof || failure == asio::error::connection_reset;
  };
  ScriptedPeer peer(context, {endless});
  auto client = plain_client(peer.port());
  run_with(peer, [&]() -> asio::awaitable<void> {
    {
      auto stream = co_await client->open(get("/watch"), soon());
      EXPECT_TRUE(stream);
    }
    while (!closed) co_await asio::post(context, asio::use_awaitable);
  });
}

TEST_F(StreamTest, CancellationOfAReaderUnwinds) {
  ScriptedPeer peer(context, {[](Socket& socket) -> asio::awaitable<void> {
                      co_await read_head(socket);
                      co_await say(socket, chunked_head);
                      co_await wait_for_end(socket);
                    }});
  auto client = plain_client(peer.port());
  bool returned = false;
  bool opened = false;
  const auto read = [&]() -> asio::awaitable<void> {
    auto stream = co_await client->open(get("/watch"), soon());
    opened = stream.has_value();
    const auto ignored = co_await (*stream)->read_some(TimePoint::max());
    returned = true;
  };
  run_with(peer, [&]() -> asio::awaitable<void> {
    co_await with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn(read());
      while (!opened) co_await asio::post(context, asio::use_awaitable);
    });
  });
  EXPECT_TRUE(opened);
  EXPECT_FALSE(returned);
}

}  // namespace
}  // namespace haulout::testing
