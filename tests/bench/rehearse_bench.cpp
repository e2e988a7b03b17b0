// Measures what rehearsals of fleets cost. Each fleet is rehearsed in a process of its own, because only the peak of
// the memory of a whole process can be measured.
//
//   rehearse_bench                     compares a small fleet with a larger one. The exit code is 1 if a pod of the
//                                      larger one costs more than promised
//   rehearse_bench --curve             from 25 to 2,000 nodes, for docs/numbers.md
//   rehearse_bench --write NODES PODS  writes the snapshot of a fleet with so many pods on each node
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iostream>

#include "base/slab_heap.hpp"
#include "rehearse/fleet_rehearsal.hpp"
#include "tests/bench/fleet_snapshot.hpp"

namespace {

struct Cost {
  double seconds = 0;
  long kilobytes = 0;
  bool updated = false;  // every node, and every pod found capacity
};

double seconds(const timeval& time) {
  constexpr double micro = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * micro;
}

std::string read_all(int from) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t length = 0; (length = read(from, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(length));
  return text;
}

bool write_all(int to, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t length = write(to, text.data() + sent, text.size() - sent);
    if (length <= 0) return false;
    sent += static_cast<std::size_t>(length);
  }
  return true;
}

bool rehearse(std::string text) {
  haulout::use_slab_heap();  // as the command does
  haulout::rehearse::FleetInput input;
  input.snapshot.documents = {{std::move(text)}};
  input.snapshot.stored = true;
  input.snapshot.read_at = haulout::WallTime(std::chrono::sys_days(std::chrono::year(2026) / 12 / 1));
  const auto rehearsal = haulout::rehearse::rehearse_fleet(std::move(input));
  if (!rehearsal) std::fprintf(stderr, "%s\n", rehearsal.error().message().c_str());
  return rehearsal && rehearsal->end == haulout::rehearse::FleetEnd::over && rehearsal->no_room.empty();
}

// Runs `work` in a process of its own, which ends with success if `work` returns true.
template <class Work>
pid_t apart(Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(work() ? EXIT_SUCCESS : EXIT_FAILURE);
  return child;
}

// The snapshot is written by another process, because its making takes memory, too.
Cost measure(std::size_t nodes, std::size_t pods) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t writer = apart([&] { return write_all(ends[1], haulout::bench::fleet_snapshot(nodes, pods)); });
  close(ends[1]);
  const pid_t player = apart([&] { return rehearse(read_all(ends[0])); });
  close(ends[0]);
  int written = EXIT_FAILURE, status = EXIT_FAILURE;
  rusage usage{};
  if (writer < 0 || player < 0 || wait4(player, &status, 0, &usage) != player || waitpid(writer, &written, 0) != writer)
    return {};
  const bool updated = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS && written == EXIT_SUCCESS;
  const Cost cost{seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss, updated};
  std::printf("%6zu %6zu %10.1f s %8ld MB%s\n", nodes, nodes * pods, cost.seconds, cost.kilobytes / 1024,
              cost.updated ? "" : "  FAILED");
  return cost;
}

int compare() {
  constexpr double promised = 1.3;
  constexpr std::size_t small = 200, large = 800, pods = 10;
  const Cost one = measure(small, pods), other = measure(large, pods);
  const double ratio = other.seconds / one.seconds * small / large;
  const bool kept = one.updated && other.updated && ratio <= promised;
  std::printf("a pod of %zu nodes costs %.2f times as much as one of %zu, promised: at most %.1f: %s\n", large, ratio,
              small, promised, kept ? "kept" : "BROKEN");
  return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}

int curve() {
  constexpr std::size_t pods = 30;
  bool updated = true;
  for (const std::size_t nodes : std::initializer_list<std::size_t>{25, 50, 100, 200, 500, 1000, 2000})
    updated = measure(nodes, pods).updated && updated;
  return updated ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int count, char** words) {
  constexpr int with_numbers = 4;
  if (count == with_numbers && std::strcmp(words[1], "--write") == 0) {
    std::cout << haulout::bench::fleet_snapshot(std::strtoul(words[2], nullptr, 10),
                                                std::strtoul(words[3], nullptr, 10));
    return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  std::printf("%6s %6s %12s %11s\n", "nodes", "pods", "processor", "memory");
  return count == 2 && std::strcmp(words[1], "--curve") == 0 ? curve() : compare();
}
