// Services as their documentation has them, on the private bus, with behaviour that a test can switch at any time.
// Each writes down what it was asked for and raises `event`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/dbus/bus_link.hpp"
#include "retry/notifier.hpp"

namespace haulout::testing {

class FakeService {
 public:
  FakeService(boost::asio::any_io_executor executor, Clock& clock, Notifier& event, std::string name, std::string path)
      : executor_(std::move(executor)), clock_(clock), event_(event), name_(std::move(name)), path_(std::move(path)) {}
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;
  virtual ~FakeService() = default;

  // On the bus, owning its name, when this returns; answers while serve() runs.
  void connect(const std::string& address);
  // Until the bus goes away or leave().
  boost::asio::awaitable<void> serve();
  void leave() { link_->fail("the service has ended"); }
  bool connected() const { return link_ != nullptr; }
  // The test is over: waits for nothing any more.
  virtual void end() {}

  std::vector<std::string> calls;

 protected:
  virtual void publish(sdbus::IObject& object) = 0;
  // Lets go of what belongs to the last connection.
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

// org.freedesktop.login1(5)
class FakeLogin1 final : public FakeService {
 public:
  using Inhibitor = sdbus::Struct<std::string, std::string, std::string, std::string, std::uint32_t, std::uint32_t>;
  FakeLogin1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.freedesktop.login1", "/org/freedesktop/login1") {}

  std::string can_reboot = "yes";
  bool silent = false;             // CanReboot is heard and never answered
  bool with_flags = true;          // has RebootWithFlags (before connect)
  bool numbers_for_words = false;  // of inhibitors, other types than documented (before connect)
  std::optional<sdbus::Error> refusal{};
  std::vector<Inhibitor> inhibitors{};

  std::uint64_t delay_max_usec = 30'000'000;
  bool refuses_locks = false;
  bool says_no_properties = false;
  bool preparing = false;
  int locks = 0;  // delay locks that are held

  // Answers what silence has held back.
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
  // The ends of the locks that logind keeps; they survive its restart.
  std::vector<std::shared_ptr<boost::asio::posix::stream_descriptor>> readers_;
};

// org.freedesktop.systemd1(5)
class FakeSystemd1 final : public FakeService {
 public:
  FakeSystemd1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "org.freedesktop.systemd1", "/org/freedesktop/systemd1") {}

  std::string system_state = "running";
  std::uint64_t userspace_began = 5'000'000;
  std::map<std::string, std::string> active_states{};  // by unit; the others are inactive

 private:
  void publish(sdbus::IObject& object) override;
};

// com.coreos.update1 of Flatcar's update_engine
class FakeUpdate1 final : public FakeService {
 public:
  FakeUpdate1(boost::asio::any_io_executor executor, Clock& clock, Notifier& event)
      : FakeService(std::move(executor), clock, event, "com.coreos.update1", "/com/coreos/update1") {}

  std::string operation = "UPDATE_STATUS_IDLE";
  std::string new_version = "0.0.0";
  bool strange = false;  // answers with other types than documented (before connect)

  // Sends StatusUpdate with what stands above.
  void send_status(double progress = 0);
  // A signal of that name with something else in it.
  void send_nonsense();

 private:
  void publish(sdbus::IObject& object) override;
};

// org.projectatomic.rpmostree1 of rpm-ostreed
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
