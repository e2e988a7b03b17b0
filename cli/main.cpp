// Entry point of haulout: parses the command line, runs the command on one thread and returns its exit code.
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/slab_heap.hpp"
#include "cli/agent/agent_program.hpp"
#include "cli/agent/fleetlock_job.hpp"
#include "cli/audit/audit_program.hpp"
#include "cli/drain/jobs.hpp"
#include "cli/migrate/migrate_program.hpp"
#include "cli/options/command_line.hpp"
#include "cli/people/people_job.hpp"
#include "cli/program/program.hpp"
#include "cli/rehearse/rehearse_program.hpp"
#include "retry/real_clock.hpp"

namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
    std::fputs("error: the kernel provides no random numbers (getrandom)\n", stderr);
    std::exit(1);
  }
  return seed;
}

// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise the next file or socket that is opened
// would get its number, and the program would read input from it or write output to it. Go's runtime does the same.
void open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) == -1 && ::open("/dev/null", O_RDWR) != fd) std::exit(1);
}

std::unique_ptr<haulout::cli::Job> make_job(haulout::agent::Process& process, haulout::cli::Tools tools,
                                            const haulout::cli::Settings& settings) {
  using haulout::cli::Command;
  switch (settings.command) {
    case Command::drain:
    case Command::retire:
    case Command::cordon:
    case Command::uncordon: return haulout::cli::make_drain_job(process, std::move(tools), settings);
    case Command::fleetlock_serve:
      return std::make_unique<haulout::cli::FleetLockJob>(process, std::move(tools), settings);
    default: return haulout::cli::make_people_job(process, std::move(tools), settings);
  }
}

int run(boost::asio::io_context& context, boost::asio::awaitable<int> program) {
  int exit_code = 0;
  boost::asio::co_spawn(context, std::move(program), [&exit_code](std::exception_ptr failure, int code) {
    if (failure) std::rethrow_exception(failure);
    exit_code = code;
  });
  context.run();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  namespace agent = haulout::agent;
  namespace cli = haulout::cli;
  open_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // if the reader closes the pipe, writes fail with EPIPE and the drain continues
  agent::FdSink out(STDOUT_FILENO);
  agent::FdSink err(STDERR_FILENO);
  const std::string called = argc > 0 ? argv[0] : "haulout";
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  boost::asio::io_context context(1);
  auto parsed = cli::parse_command_line(called, args);
  if (const auto* immediate = std::get_if<cli::Immediate>(&parsed)) {
    out.write(immediate->out);
    err.write(immediate->err);
    return cli::finish_output(out, err, true, immediate->exit_code, -1);
  }
  haulout::RealClock clock;
  haulout::SeededRng rng(random_seed());
  agent::Process process{context.get_executor(),   clock, rng, out, err, haulout::k8s::Environment::of_process(),
                         cli::program_name(called)};
  auto settings = std::get<cli::Settings>(std::move(parsed));
  if (settings.command == cli::Command::agent) return run(context, cli::run_agent(process, std::move(settings)));
  const auto run_to_end = [&context](auto program) { return run(context, std::move(program)); };
  if (settings.command == cli::Command::rehearse || settings.command == cli::Command::audit) haulout::use_slab_heap();
  if (settings.command == cli::Command::rehearse) return cli::rehearse(process, settings, run_to_end);
  if (settings.command == cli::Command::audit) return cli::audit_cluster(process, settings, run_to_end);
  if (settings.command == cli::Command::migrate) return cli::migrate(process, settings, run_to_end);
  return run(context, cli::run_program(process, std::move(settings), make_job));
}
