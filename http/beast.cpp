// Compiles the non-template parts of Asio's TLS and of Beast into one object file (BOOST_*_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
