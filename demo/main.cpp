// haulout-demo: serves a simulated cluster on loopback in real time, for ./dev demo and for experiments. It is not
// installed.
//
// It loads a file of ordinary Kubernetes objects, waits 2.5 s while pods are scheduled and start, writes a kubeconfig,
// and serves until SIGINT or SIGTERM. It uses plain HTTP without authentication, so it listens on loopback only.
//
// With --machines, its Nodes have machines (demo/machines.hpp), and real agents may update them. A judge then writes to
// the file --verdict whether the promises of Haulout were kept (demo/judge.hpp).
//
// Exit codes: 0 if a signal ended it and, with --machines, the judge has found all promises kept; 1 if a file or the
// address cannot be used, or if a promise was broken or not shown to be kept; 2 for wrong usage.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "base/files.hpp"
#include "demo/machines.hpp"
#include "retry/real_clock.hpp"
#include "retry/task_group.hpp"
#include "sim/cluster.hpp"
#include "sim/http_front.hpp"

namespace haulout::demo {
namespace asio = boost::asio;

namespace {

struct DemoOptions {
  std::string listen = "127.0.0.1:0";
  std::string kubeconfig;
  std::string world;
  std::string machines, verdict;
  std::uint64_t seed = 1;
};

// Time for the scheduler and the kubelets to start the pods before the kubeconfig is written.
constexpr Duration come_to_rest = std::chrono::milliseconds(2500);
// The verdict is written after this time at the latest. A fleet of three nodes needs less than a minute.
constexpr Duration longest_update = std::chrono::minutes(3);
// The update counts as over only if the judge finds it still over this much later.
constexpr Duration last_look = std::chrono::seconds(1);

Result<http::ServerOptions> parse_listen(const std::string& listen) {
  http::ServerOptions options;
  const auto colon = listen.rfind(':');
  char* end = nullptr;
  const unsigned long port = colon == std::string::npos ? 65536 : std::strtoul(listen.c_str() + colon + 1, &end, 10);
  if (port > 65535 || end == nullptr || *end != '\0')
    return Error(Errc::invalid, fmt::format("--listen {}: expected ADDRESS:PORT, for example 127.0.0.1:0", listen));
  options.address = listen.substr(0, colon);
  if (options.address != "127.0.0.1" && options.address != "::1")
    return Error(
        Errc::invalid,
        fmt::format("--listen {}: the demo has no authentication, so it listens on 127.0.0.1 or ::1 only", listen));
  options.port = static_cast<std::uint16_t>(port);
  return options;
}

std::string kubeconfig_text(const std::string& address, std::uint16_t port) {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: demo\n"
      "clusters:\n- {{name: demo, cluster: {{server: \"http://{}:{}\"}}}}\n"
      "users:\n- {{name: demo, user: {{}}}}\n"
      "contexts:\n- {{name: demo, context: {{cluster: demo, user: demo}}}}\n",
      address == "::1" ? "[::1]" : address, port);
}

asio::awaitable<void> wait_for_signal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(asio::use_awaitable);
}

// Writes the kubeconfig when the pods have had time to start, prints the address, and waits for a signal.
asio::awaitable<void> announce_and_wait(Clock& clock, std::string kubeconfig, std::string address, std::uint16_t port,
                                        int& code) {
  co_await clock.sleep_until(clock.now() + come_to_rest);
  const auto written = write_whole_file(kubeconfig, kubeconfig_text(address, port));
  if (!written) {
    std::fprintf(stderr, "error: %s\n", written.error().message().c_str());
    code = 1;
    co_return;
  }
  std::printf("a simulated cluster listens on %s:%u; kubectl --kubeconfig %s get pods -A shows it\n", address.c_str(),
              static_cast<unsigned>(port), kubeconfig.c_str());
  std::fflush(stdout);
  co_await wait_for_signal();
}

// Writes the verdict when the update is over, or after `longest_update`. Sets `kept` if all promises were kept and the
// verdict was written.
asio::awaitable<void> judge_fleet(Clock& clock, const DemoJudge& judge, std::string path, bool& kept) {
  const TimePoint limit = clock.now() + longest_update;
  for (bool over = false; !over && clock.now() < limit;) {
    over = judge.over();
    co_await clock.sleep_until(clock.now() + last_look);
    over = over && judge.over();
  }
  const auto verdict = judge.verdict();
  kept = all_kept(verdict);
  std::string text;
  for (const std::string& line : verdict_lines(verdict)) text += line + '\n';
  if (const auto written = write_whole_file(path, text); !written) {
    std::fprintf(stderr, "error: %s\n", written.error().message().c_str());
    kept = false;
  }
}

asio::awaitable<int> serve(asio::any_io_executor executor, DemoOptions options) {
  const auto failed = [](const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message().c_str());
    return 1;
  };
  RealClock clock;
  SeededRng rng(options.seed);
  sim::Cluster cluster(executor, clock, rng);
  DemoJudge judge(clock.now());
  cluster.on_change([&judge](const sim::Change& change) { judge.see(change); });
  cluster.server().on_answer([&judge](const sim::AuditEntry& entry) { judge.see(entry); });
  auto listen = parse_listen(options.listen);
  if (!listen) co_return failed(listen.error());
  auto world = read_whole_file(options.world);
  if (!world) co_return failed(world.error());
  auto loaded = cluster.load(*world);
  if (!loaded) co_return failed(std::move(loaded).error().with_context(options.world));
  auto front = sim::HttpFront::listen(executor, clock, cluster.api(), *listen);
  if (!front) co_return failed(front.error());

  int code = 0;
  bool kept = options.machines.empty();
  co_await with_task_group([&](TaskGroup& group) {
    group.spawn(cluster.run());
    group.spawn((*front)->run());
    if (!options.machines.empty()) {
      group.spawn(follow_machines(clock, cluster, judge, options.machines));
      group.spawn(judge_fleet(clock, judge, options.verdict, kept));
    }
    return announce_and_wait(clock, options.kubeconfig, listen->address, (*front)->port(), code);
  });
  co_return kept ? code : 1;
}

asio::awaitable<int> run(asio::any_io_executor executor, std::vector<std::string> args) {
  DemoOptions options;
  CLI::App app("Serves a simulated Kubernetes cluster on loopback until it is interrupted", "haulout-demo");
  app.add_option("--listen", options.listen, "Address and port; port 0 takes a free one")->capture_default_str();
  app.add_option("--kubeconfig", options.kubeconfig,
                 "File to which the kubeconfig is written when the pods have had time to start")
      ->required();
  app.add_option("--world", options.world, "File with Kubernetes objects, as kubectl get -o yaml or json prints them")
      ->required();
  auto* machines =
      app.add_option("--machines", options.machines,
                     "A directory with the root of each Node's machine; the update of this fleet is judged");
  machines->needs(
      app.add_option("--verdict", options.verdict,
                     "File for the verdict of the judge; written when every node is updated, or after 3 minutes")
          ->needs(machines));
  app.add_option("--seed", options.seed, "Seed of all random decisions of the simulation")->capture_default_str();
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("error: {}\nSee 'haulout-demo --help' for usage.\n", error.what());
  });
  std::reverse(args.begin(), args.end());  // CLI11 reads the arguments from the end of the vector
  try {
    app.parse(std::move(args));
  } catch (const CLI::ParseError& problem) {
    co_return app.exit(problem) == 0 ? 0 : 2;
  }
  co_return co_await serve(std::move(executor), std::move(options));
}

}  // namespace
}  // namespace haulout::demo

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed connection must not end the process
  boost::asio::io_context context(1);
  int exit_code = 0;
  boost::asio::co_spawn(context, haulout::demo::run(context.get_executor(), {argv + std::min(argc, 1), argv + argc}),
                        [&exit_code](std::exception_ptr failure, int code) {
                          if (failure) std::rethrow_exception(failure);
                          exit_code = code;
                        });
  context.run();
  return exit_code;
}
