// What most tests of the upper libraries include. A change of one of these headers rebuilds most tests anyway.
#pragma once
#include "cmake/pch.hpp"

#include <fstream>
#include <random>
#include <ranges>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "drain/drain.hpp"
#include "k8s/client.hpp"
#include "sim/cluster.hpp"
#include "tests/support/test_cluster.hpp"
#include "tests/support/virtual_time.hpp"
