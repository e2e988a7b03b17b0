// Tests the Bottlerocket back end over its real transport: HTTP on a unix socket below the host's root. The server is
// this project's own, which listens on TCP. A relay connects the two.
#include <gmock/gmock.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "agent/backends/bottlerocket_backend.hpp"
#include "http/server.hpp"
#include "retry/task_group.hpp"
#include "tests/agent/backends/fake_bottlerocket.hpp"
#include "tests/k8s/temp_dir.hpp"
#include "tests/support/real_time.hpp"

namespace haulout::agent {
namespace {
namespace asio = boost::asio;
using Local = asio::local::stream_protocol;
using Tcp = asio::ip::tcp;

template <class From, class To>
asio::awaitable<void> pump(From& from, To& to, TaskGroup& relay) {
  std::array<char, 4096> buffer;
  for (;;) {
    const auto [failure, size] =
        co_await from.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
    if (failure) break;
    co_await asio::async_write(to, asio::buffer(buffer, size), asio::as_tuple(asio::use_awaitable));
  }
  relay.cancel();
}

asio::awaitable<void> relay_one(Local::socket near, std::uint16_t port) {
  Tcp::socket far(near.get_executor());
  co_await far.async_connect({asio::ip::address_v4::loopback(), port}, asio::use_awaitable);
  const std::function<asio::awaitable<void>(TaskGroup&)> both = [&](TaskGroup& group) -> asio::awaitable<void> {
    group.spawn(pump(near, far, group));
    group.spawn(pump(far, near, group));
    co_await group.join();
  };
  try {
    co_await with_task_group(both);
  } catch (const boost::system::system_error&) {
    // One side closed the connection.
  }
}

class BottlerocketSocketTest : public haulout::testing::RealTimeTest {
 protected:
  haulout::testing::TempDir dir;
  const HostRoot root{dir.path()};
  SeededRng rng{1};
  haulout::testing::FakeBottlerocket fake{clock};

  asio::awaitable<void> relay(Local::acceptor& acceptor, std::uint16_t port, TaskGroup& group) {
    for (;;) {
      Local::socket near = co_await acceptor.async_accept(asio::use_awaitable);
      group.spawn(relay_one(std::move(near), port));
    }
  }
  asio::awaitable<void> answer(http::Exchange& exchange) {
    const auto replied = co_await exchange.reply(fake.answer(exchange.request()));
    static_cast<void>(replied);  // the client reports a failure
  }

  // Runs `body` with a back end while a server answers on its socket.
  void with_backend(const std::function<asio::awaitable<void>(BottlerocketBackend&)>& body) {
    std::filesystem::create_directories(dir / "run");
    Local::acceptor acceptor(context, Local::endpoint(dir / "run/api.sock"));
    auto server = http::Server::listen(context.get_executor(), clock, {},
                                       [this](http::Exchange& exchange) { return answer(exchange); });
    ASSERT_TRUE(server);
    auto client = bottlerocket_client(context.get_executor(), clock, root);
    ASSERT_TRUE(client) << client.error().message();
    BottlerocketBackend backend(**client, clock, rng);
    run(with_task_group([&](TaskGroup& group) -> asio::awaitable<void> {
      group.spawn((*server)->run());
      group.spawn(relay(acceptor, (*server)->port(), group));
      co_await body(backend);
    }));
  }
};

TEST_F(BottlerocketSocketTest, AsksAndApplies) {
  fake.published = fake.chosen = fake.staged = "1.16.0";
  fake.state = "Staged";
  with_backend([&](BottlerocketBackend& backend) -> asio::awaitable<void> {
    const auto version = co_await backend.booted(soon());
    EXPECT_TRUE(version && *version == "1.15.1");
    const Pending before = co_await backend.pending(soon());
    EXPECT_EQ(before.need, Need::yes) << before.problem;
    EXPECT_EQ(before.target, "1.16.0");
    const auto applied = co_await backend.apply("1.16.0", soon());
    EXPECT_TRUE(applied) << applied.error().message();
  });
  EXPECT_THAT(fake.actions, ::testing::ElementsAre("refresh", "activate"));
}

TEST_F(BottlerocketSocketTest, WithoutASocketItIsUnknown) {
  auto client = bottlerocket_client(context.get_executor(), clock, root);
  ASSERT_TRUE(client);
  BottlerocketBackend backend(**client, clock, rng);
  const Pending answer = run(backend.pending(soon()));
  EXPECT_EQ(answer.need, Need::unknown);
  EXPECT_THAT(answer.problem, ::testing::HasSubstr("api.sock"));
}

}  // namespace
}  // namespace haulout::agent
