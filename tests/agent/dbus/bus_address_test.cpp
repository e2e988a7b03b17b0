#include "agent/dbus/bus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace haulout::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(BusAddress, TheUsualSocketsBeneathTheHostsRoot) {
  EXPECT_THAT(system_bus_addresses("/", nullptr),
              ElementsAre("unix:path=/run/dbus/system_bus_socket", "unix:path=/var/run/dbus/system_bus_socket"));
  EXPECT_THAT(system_bus_addresses("/host/", ""), ElementsAre("unix:path=/host/run/dbus/system_bus_socket",
                                                              "unix:path=/host/var/run/dbus/system_bus_socket"));
}

TEST(BusAddress, TheEnvironmentWins) {
  EXPECT_THAT(system_bus_addresses("/host", "unix:path=/a;;tcp:host=b"), ElementsAre("unix:path=/a", "tcp:host=b"));
}

TEST(BusAddress, APathGoesThereAndBack) {
  for (const std::string root : {"/plain", "/with space, comma; and %", "/ümlaut"}) {
    const auto addresses = system_bus_addresses(root, nullptr);
    EXPECT_EQ(addresses[0].find_first_of(" ,;", 10), std::string::npos) << addresses[0];
    EXPECT_THAT(socket_path_of(addresses[0]), Optional(root + "/run/dbus/system_bus_socket"));
  }
}

TEST(BusAddress, OnlyASocketWithAPathHasOne) {
  EXPECT_THAT(socket_path_of("unix:guid=00ff,path=/a%2cb"), Optional(std::string("/a,b")));
  for (const char* const other :
       {"unix:abstract=/a", "tcp:host=a,path=/b", "unix:path=/a%2", "unix:path=/a%zz", "", "unix:"})
    EXPECT_EQ(socket_path_of(other), std::nullopt) << other;
}

}  // namespace
}  // namespace haulout::agent
