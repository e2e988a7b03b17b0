#include "agent/dbus/bus_link.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "tests/agent/dbus/bus_fixture.hpp"

namespace haulout::testing {
namespace {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

class BusProbe : public BusTest {
 protected:
  const std::string path = root / "socket";

  // Returns the probe's result for a server that sends `lines`, one for each line that it receives.
  Result<> against(std::vector<std::string> lines, TimePoint deadline) {
    Local::acceptor acceptor(context, Local::endpoint(path));
    std::optional<Result<>> probed;
    run({}, [&](TaskGroup& group) -> awaitable<void> {
      group.spawn(serve(acceptor, lines));
      probed = co_await agent::probe_bus(clock, path, deadline);
    });
    return *probed;
  }

 private:
  static awaitable<void> serve(Local::acceptor& acceptor, std::vector<std::string> lines) {
    Local::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    std::string heard;
    for (std::string line : lines) {
      heard.erase(0, co_await asio::async_read_until(socket, asio::dynamic_buffer(heard), "\r\n", asio::use_awaitable));
      line += "\r\n";
      co_await asio::async_write(socket, asio::buffer(line), asio::use_awaitable);
    }
    co_await socket.async_wait(Local::socket::wait_error, asio::use_awaitable);
  }
};

TEST_F(BusProbe, ABusThatKnowsUs) {
  EXPECT_TRUE(against({"DATA", "OK 0123456789abcdef"}, soon()));
}

TEST_F(BusProbe, ASocketBehindWhichNobodyAnswersIsNotWaitedForWithoutEnd) {
  EXPECT_EQ(error_of(against({}, shortly())).code(), Errc::unreachable);
}

TEST_F(BusProbe, ABusThatDoesNotKnowUsNamesTheTrapsOfAPod) {
  const Error error = error_of(against({"DATA", "REJECTED EXTERNAL"}, soon()));
  EXPECT_EQ(error.code(), Errc::unreachable);
  EXPECT_THAT(error.message(), ::testing::HasSubstr("hostUsers"));
}

TEST_F(BusProbe, NoSocket) {
  std::optional<Result<>> probed;
  run({}, [&](TaskGroup&) -> awaitable<void> { probed = co_await agent::probe_bus(clock, path, soon()); });
  EXPECT_EQ(error_of(*probed).code(), Errc::unreachable);
}

TEST_F(BusProbe, APathThatNoSocketCanHave) {
  std::optional<Result<>> probed;
  run({}, [&](TaskGroup&) -> awaitable<void> {
    probed = co_await agent::probe_bus(clock, "/" + std::string(200, 'x'), soon());
  });
  EXPECT_EQ(error_of(*probed).code(), Errc::unreachable);
}

}  // namespace
}  // namespace haulout::testing
