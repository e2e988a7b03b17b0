#include "tests/agent/dbus/private_bus.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace haulout::testing {
namespace {

constexpr const char* configuration =
    R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>{}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    {}
  </policy>
</busconfig>
)";

}  // namespace

PrivateBus::PrivateBus(std::string root, std::string rules) : root_(std::move(root)), rules_(std::move(rules)) {}

PrivateBus::~PrivateBus() {
  stop();
}

void PrivateBus::write_configuration() const {
  std::filesystem::create_directories(root_ + "/run/dbus");
  std::ofstream(root_ + "/bus.conf") << fmt::format(configuration, address(), rules_);
}

void PrivateBus::start() {
  stop();
  write_configuration();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::string config = "--config-file=" + root_ + "/bus.conf";
  daemon_ = ::fork();
  if (daemon_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes leaves no daemon behind
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // hides warnings about limits that do not matter here
    ::execlp("dbus-daemon", "dbus-daemon", config.c_str(), "--nofork", "--nopidfile", "--nosyslog", "--print-address=1",
             nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  // The daemon prints its address once it listens.
  char first = 0;
  const bool listens = ::read(ends[0], &first, 1) == 1;
  ::close(ends[0]);
  if (listens) return;
  stop();
  throw std::runtime_error("dbus-daemon did not start; is the package dbus-daemon installed? (./dev test does that)");
}

void PrivateBus::stop() {
  if (daemon_ <= 0) return;
  ::kill(daemon_, SIGKILL);
  while (::waitpid(daemon_, nullptr, 0) < 0 && errno == EINTR) {
  }
  daemon_ = -1;
  std::filesystem::remove(socket());
}

}  // namespace haulout::testing
