// The parts of the simulated cluster (sim/cluster.hpp), which owns them. Tests use them to make single parts misbehave.
// Cannot be copied or moved, because the parts refer to each other. Borrows clock and rng.
#pragma once

#include "sim/api_server.hpp"
#include "sim/budgets.hpp"
#include "sim/controllers.hpp"
#include "sim/eviction_requests.hpp"
#include "sim/machines.hpp"
#include "sim/scheduler.hpp"
#include "sim/volumes.hpp"
#include "sim/workloads.hpp"

namespace haulout::sim {

struct ClusterParts {
  ClusterParts(boost::asio::any_io_executor executor, Clock& clock, Rng& rng, Timing timing_in)
      : timing(timing_in), agenda(executor, clock), store(clock, rng), server(world, executor) {}
  ClusterParts(const ClusterParts&) = delete;
  ClusterParts& operator=(const ClusterParts&) = delete;

  Timing timing;
  Switches switches;
  Agenda agenda;
  Store store;
  World world{store, agenda, store.rng(), timing, switches};
  // The server is declared before the controllers, so that watches receive a change before controllers react to it.
  ApiServer server;
  Kubelet kubelet{world};
  Scheduler scheduler{world};
  Workloads workloads{world};
  JobTracking job_tracking{world};
  DisruptionController disruption{world};
  NodeLifecycle node_lifecycle{world};
  PodGarbageCollector pod_gc{world};
  NamespaceController namespaces{world};
  OwnerGarbageCollector garbage_collector{world};
  EventExpiry event_expiry{world};
  EvictionRequestController eviction_requests{world};
  Volumes volumes{world};
  Machines machines{world, kubelet};
};

}  // namespace haulout::sim
