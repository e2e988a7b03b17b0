// The back end and the updater of the tools in image_tools.hpp. Both run the programs of the tool on the host.
#pragma once

#include <string>
#include <vector>

#include "agent/backends/file_backend.hpp"
#include "agent/backends/image_tools.hpp"
#include "agent/hosts/host_programs.hpp"
#include "agent/hosts/host_root.hpp"
#include "agent/ports/backend.hpp"
#include "agent/ports/updater.hpp"
#include "retry/clock.hpp"
#include "retry/rng.hpp"

namespace haulout::agent {

// Runs the programs of one question, one after the other, and returns how they ended. Each run has a unit of its own,
// because the output of a unit that runs already is lost. Fails with Errc::unavailable if a program ends with an exit
// status that is no answer, otherwise as HostPrograms::run() does. Cancellable.
Task<ToolAnswers> ask_tool(HostPrograms& programs, Clock& clock, std::vector<ToolCommand> commands, TimePoint deadline);

// The back end: a reboot is needed if the next boot runs another image than the running one. pending() and booted()
// run the programs of `ImageTool::status`. changed() returns when a file of `ImageTool::hints` has changed, or when
// next_recheck() is due. apply() does nothing: an image that pending() reports is in place.
class ImageBackend final : public Backend {
 public:
  // Borrows `programs`, `clock` and `rng`. Destroy it before the io_context on which it runs.
  ImageBackend(ImageTool tool, HostRoot root, HostPrograms& programs, Clock& clock, Rng& rng);

  std::string name() const override { return tool_.name; }
  // As the last pending() has found: some tools name an image by a version if it has one, and otherwise by something
  // that means nothing on another machine.
  bool versions_are_shared() const override { return tool_.versions_are_shared && next_is_shared_; }
  boost::asio::awaitable<Pending> pending(TimePoint deadline) override;
  Task<std::string> booted(TimePoint deadline) override;
  Task<> apply(std::string target, TimePoint deadline) override;
  boost::asio::awaitable<void> changed() override;

 private:
  Task<Images> images(TimePoint deadline);

  ImageTool tool_;
  HostRoot root_;
  HostPrograms& programs_;
  Clock& clock_;
  Rng& rng_;
  FileWatch watch_;
  bool next_is_shared_ = true;
};

// The updater: install() stages the image that the tool offers, and never reboots. An image that is staged already does
// not count as an update that waits. The running system does not change, so the node may have pods meanwhile.
class ImageUpdater final : public Updater {
 public:
  // `backend` is asked which image runs and which is staged. Borrows everything but the tool.
  ImageUpdater(ImageTool tool, Backend& backend, HostPrograms& programs, Clock& clock, Rng& rng);

  bool versions_are_shared() const override { return tool_.versions_are_shared; }
  boost::asio::awaitable<Updates> look(TimePoint deadline) override;
  // Returns after about an hour, because no event reports that an image is available.
  boost::asio::awaitable<void> changed() override;
  // Does nothing: the tools download and write in one step.
  Task<> download(TimePoint deadline) override;
  Task<std::string> blocked_by(TimePoint deadline) override;
  Task<> install(TimePoint deadline) override;

 private:
  Task<Updates> offer(TimePoint deadline);
  Task<Updates> offer_alone(TimePoint deadline);
  Task<> stage(TimePoint deadline);
  // Waits until no other program of this updater runs: tools refuse to run twice.
  Task<> wait_for_others(TimePoint deadline);

  ImageTool tool_;
  Backend& backend_;
  HostPrograms& programs_;
  Clock& clock_;
  Rng& rng_;
  bool busy_ = false;
};

}  // namespace haulout::agent
