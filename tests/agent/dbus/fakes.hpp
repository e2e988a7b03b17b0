// Fake services on the private bus. They behave as documented, and a test can change their behaviour at any time. Each
// service records its calls and notifies `event`. Borrows the clock and `event`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/dbus/bus_link.hpp"
#include "retry/notifier.hpp"
#include "tests/agent/dbus/sdbus_server.hpp"

namespace haulout::testing {

class FakeService {
 public:
  FakeService(boost::asio::any_io_executor executor, Clock& clock, Notifier& event, std::string name, std::string path)
      : executor_(std::move(executor)), clock_(clock), event_(event), name_(std::move(name)), path_(std::move(path)) {}
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;
  virtual ~FakeService() = default;

  // Connects to the bus and owns the service's name when it returns. The service answers while serve() runs.
  void connect(const std::string& address);
  // Runs until the bus disconnects or leave() is called.
  boost::asio::awaitable<void> serve();
  void leave() { link_->fail("the service has ended"); }
  bool connected() const { return link_ != nullptr; }
  // Cancels all waits of the service at the end of a test.
  virtual void end() {}

  std::vector<std::string> calls;

 protected:
  virtual void publish(sdbus::IObject& object) = 0;
  // Releases what belongs to the last connection.
  virtual void forget() {}
  void note(std::string call);
  sdbus::IObject& object() { return *object_; }
  sdbus::IConnection& connection() { return link_->connection(); }
  const boost::asio::any_io_executor& executor() const { return executor_; }
  Notifier& event() { return event_; }

 private:
  boost::asio::any_io_executor executor_;
  Clock& clock_;
  Notifier& event_;
  std::string name_;
  std::string path_;
  std::shared_ptr<agent::BusLink> link_;
  std::unique_ptr<sdbus::IObject> object_;
};

// Simulates org.freedesktop.login1(5).
class FakeLogin1 final : public FakeService {
 public:
  using Inhibitor = sdbus::Struct<std::string, std::string, std::string, std::string, std::uint32_t, std::uint32_t>;
  FakeLogin1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.freedesktop.login1", "/org/freedesktop/login1") {}

  std::string can_reboot = "yes";
  bool silent = false;      // CanReboot is received but not answered
  bool with_flags = true;   // offers RebootWithFlags; set before connect()
  bool knows_kexec = true;  // else refuses requests with the flag for it, as a logind that is older than the flag
  bool numbers_for_words = false;  // returns inhibitors with undocumented types; set before connect()
  std::optional<sdbus::Error> refusal{};
  std::vector<Inhibitor> inhibitors{};

  std::uint64_t delay_max_usec = 30'000'000;
  bool refuses_locks = false;
  bool says_no_properties = false;
  bool preparing = false;
  int locks = 0;  // number of delay locks that are held

  // Answers the calls that were held back because of `silent`.
  void answer_late();
  // Sends PrepareForShutdown.
  void prepare(bool starts);
  void end() override;

 private:
  void publish(sdbus::IObject& object) override;
  void publish_inhibitors(sdbus::IObject& object);
  void forget() override { held_.clear(); }
  sdbus::UnixFd inhibit(const std::string& request);

  std::vector<sdbus::Result<std::string>> held_;
  // Read ends of the locks' pipes, which logind keeps. They survive a restart of logind.
  std::vector<std::shared_ptr<boost::asio::posix::stream_descriptor>> readers_;
};

// Simulates org.freedesktop.systemd1(5).
class FakeSystemd1 final : public FakeService {
 public:
  FakeSystemd1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.freedesktop.systemd1", "/org/freedesktop/systemd1") {}

  std::string system_state = "running";
  std::uint64_t userspace_began = 5'000'000;
  std::map<std::string, std::string> active_states{};  // by unit; all other units are inactive

 private:
  void publish(sdbus::IObject& object) override;
};

// Simulates com.coreos.update1 of Flatcar's update_engine.
class FakeUpdate1 final : public FakeService {
 public:
  FakeUpdate1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "com.coreos.update1", "/com/coreos/update1") {}

  std::string operation = "UPDATE_STATUS_IDLE";
  std::string new_version = "0.0.0";
  bool strange = false;  // returns undocumented types; set before connect()
  // AttemptUpdate makes these the next operations, one for each GetStatus; the last one stays.
  std::vector<std::string> after_attempt{};

  // Sends StatusUpdate with the values of the fields above.
  void send_status(double progress = 0);
  // Sends a StatusUpdate signal with undocumented content.
  void send_nonsense();

 private:
  void publish(sdbus::IObject& object) override;

  bool attempted_ = false;
};

// Simulates org.projectatomic.rpmostree1 of rpm-ostreed.
class FakeRpmOstree1 final : public FakeService {
 public:
  using Deployment = std::map<std::string, sdbus::Variant>;
  FakeRpmOstree1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.projectatomic.rpmostree1",
                    "/org/projectatomic/rpmostree1/Sysroot") {}

  std::vector<Deployment> deployments{};

  // Sends PropertiesChanged.
  void tell();

 private:
  void publish(sdbus::IObject& object) override;
};

}  // namespace haulout::testing
