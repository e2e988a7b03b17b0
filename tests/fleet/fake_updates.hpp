// The updates of a simulated machine, and their installation: implements the agent's port. Keeps what outlives its
// agents. No I/O. Coroutines can be cancelled. Borrows everything in `Surroundings`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/ports/updater.hpp"
#include "retry/notifier.hpp"

namespace haulout::fleet {

// How a machine updates itself, including its faults.
struct UpdatesPlan {
  bool on = false;                     // its agents install updates (--update=after-drain)
  std::vector<std::string> waiting{};  // the updates that wait
  bool need_reboot = true;             // the machine has to be rebooted after the installation
  Duration takes = std::chrono::minutes(2);
  unsigned failing = 0;        // number of installations that fail
  bool outlives_agent = true;  // as a unit of systemd; otherwise the end of the agent interrupts it
  std::string blocked_by{};    // another program that installs packages
  bool unknown = false;        // the updates cannot be read
  bool fails_download = false;
  // The update is an image of this version that only the next boot runs; empty: packages.
  std::string image{};
  // Services that use replaced files after an installation, and those of them that still do after they were restarted.
  std::vector<std::string> old_services{}, stay_old{};
  // Services that do not run, and those that do not run after they were restarted.
  std::vector<std::string> down{}, fail_to_start{};
  bool fails_restart = false;        // the restart of services fails, and has no effect
  bool services_unknown = false;     // it cannot be found out which services these are
  bool restarts_agent = false;       // the agent is among these services
  bool reboot_for_services = false;  // --update-services=reboot
  bool demand_unseen = false;        // the back end does not see that a reboot was demanded for services
  bool before_drain = false;         // the image is written before the drain (--update=before-drain)
  bool forgets = false;  // after a boot the tool does not know which image it has written, and offers it again
};

class FakeUpdates final : public agent::Updater {
 public:
  struct Surroundings {
    Clock& clock;
    boost::asio::any_io_executor executor;
    std::function<void(Duration, std::function<void()>)> after;
    std::function<void(const std::string&)> trace;
    std::function<void()> began;         // called when an installation begins
    std::function<void()> needs_reboot;  // called when an installation ended that needs a reboot
    std::function<void()> kill_agent;
  };
  FakeUpdates(UpdatesPlan& plan, Surroundings surroundings)
      : plan_(plan), world_(std::move(surroundings)), news_(world_.executor) {}

  // More updates become available.
  void add(std::vector<std::string> more);
  // A person has finished the installation.
  void repaired_by_hand();
  // The machine went down.
  void cut_short();
  // Returns true if packages are installed in part.
  bool half_installed() const { return half_installed_; }
  bool running() const { return running_; }
  bool wanted() const { return plan_.on && (half_installed_ || !plan_.waiting.empty()); }
  std::size_t installations() const { return installations_; }
  std::size_t downloads() const { return downloads_; }
  std::size_t restarts() const { return restarts_; }
  std::function<void()> on_restart = [] {};  // called when services are restarted

  boost::asio::awaitable<agent::Updates> look(TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;
  Task<> download(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> install(TimePoint deadline) override;
  Task<std::vector<std::string>> old_services(TimePoint deadline) override;
  Task<> restart_services(TimePoint deadline) override;
  Task<std::vector<std::string>> failed_services(std::vector<std::string> services, TimePoint deadline) override;
  Task<bool> need_reboot_for(std::vector<std::string> services, TimePoint deadline) override;

 private:
  void end();
  void interrupt();

  UpdatesPlan& plan_;
  Surroundings world_;
  Notifier news_;
  bool running_ = false;
  bool failed_ = false;  // the last installation has failed
  bool half_installed_ = false;
  std::size_t installations_ = 0, downloads_ = 0, restarts_ = 0;
};

}  // namespace haulout::fleet
