#include "cli/drain/make_drain_job.hpp"

#include <unistd.h>

#include "cli/drain/cordon_job.hpp"
#include "cli/drain/drain_job.hpp"
#include "cli/terminal/terminal.hpp"

namespace haulout::cli {
namespace {

struct View {
  std::unique_ptr<LineView> lines;
  std::unique_ptr<LiveView> live;
  drain::DrainObserver& observer() {
    if (live) return *live;
    return *lines;
  }
};

View make_view(agent::Process& process, Console& console, const Settings& settings) {
  const int fd = settings.output == OutputFormat::text ? STDOUT_FILENO : STDERR_FILENO;
  View view;
  if (can_redraw(fd, process.environment)) {
    auto measure = [fd, environment = process.environment] { return measure_terminal(fd, environment); };
    view.live = std::make_unique<LiveView>(process.executor, process.clock, console, std::move(measure));
  } else {
    const drain::Options& options = settings.drain;
    view.lines =
        std::make_unique<LineView>(console, Wording{options.dry_run, options.delete_instead_of_evict, process.program});
  }
  return view;
}

// The job of `haulout drain`, together with the view that shows its progress.
class ViewedDrainJob final : public Job {
 public:
  ViewedDrainJob(agent::Process& process, Tools tools, const Settings& settings)
      : view_(make_view(process, tools.console, settings)),
        job_(std::move(tools), settings, view_.observer(), view_.live.get()) {}

  boost::asio::awaitable<void> run() override { return job_.run(); }
  std::vector<boost::asio::awaitable<void>> helpers() override {
    std::vector<boost::asio::awaitable<void>> all;
    if (view_.live) all.push_back(view_.live->run());
    return all;
  }
  int finish(std::optional<int> signal) override { return job_.finish(signal); }

 private:
  View view_;
  DrainJob job_;
};

}  // namespace

std::unique_ptr<Job> make_drain_job(agent::Process& process, Tools tools, const Settings& settings) {
  if (settings.command == Command::drain) return std::make_unique<ViewedDrainJob>(process, std::move(tools), settings);
  return std::make_unique<CordonJob>(std::move(tools), settings);
}

}  // namespace haulout::cli
