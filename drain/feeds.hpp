// References to all feeds of a drain, which the Drain owns.
#pragma once

#include "drain/budgets_feed.hpp"
#include "drain/controllers_feed.hpp"
#include "drain/eviction_request_feed.hpp"
#include "drain/node_feed.hpp"
#include "drain/surge_feed.hpp"
#include "drain/volumes_feed.hpp"

namespace haulout::drain {

struct Feeds {
  NodeFeed& node;
  PodsFeed& pods;
  BudgetsFeed& budgets;
  ControllersFeed& controllers;
  VolumesFeed& volumes;
  SurgeFeed& surge;
  EvictionRequestFeed& requests;
};

}  // namespace haulout::drain
