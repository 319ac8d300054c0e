#include "streams/bounded_queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace valora::streams {
namespace {

TEST(BoundedQueue, DropsTheOldestBeyondItsEntries) {
  BoundedQueue<int> queue(2);
  for (int i = 1; i <= 4; ++i) queue.push(i);
  EXPECT_EQ(queue.dropped(), 2);
  EXPECT_EQ(queue.waiting(), 2u);
  EXPECT_EQ(queue.take(), 3);
  EXPECT_EQ(queue.take(), 4);
  EXPECT_EQ(queue.take(), std::nullopt);
}

TEST(BoundedQueue, DropsTheOldestBeyondItsBytesButNeverTheNewest) {
  BoundedQueue<int> queue(10, 100);
  queue.push(1, 60);
  queue.push(2, 60);
  EXPECT_EQ(queue.dropped(), 1);
  queue.push(3, 500);
  EXPECT_EQ(queue.dropped(), 2);
  EXPECT_EQ(queue.take(), 3);
  queue.push(4, 60);  // the bytes of what was taken count no more
  queue.push(5, 40);
  EXPECT_EQ(queue.waiting(), 2u);
}

TEST(BoundedQueue, WhatIsPutBackComesFirstIfThereIsRoom) {
  BoundedQueue<int> queue(2);
  queue.push(1);
  queue.push(2);
  queue.put_back(queue.take().value());
  EXPECT_EQ(queue.take(), 1);
  queue.push(3);
  queue.put_back(1);
  EXPECT_EQ(queue.dropped(), 1);
  EXPECT_EQ(queue.take(), 2);
}

TEST(BoundedQueue, AReaderWaitsForAnEntryOrAStop) {
  BoundedQueue<int> queue(2);
  std::stop_source stop;
  std::optional<int> first, second = 0;
  std::jthread reader([&] {
    first = queue.wait_and_take(stop.get_token());
    second = queue.wait_and_take(stop.get_token());
  });
  queue.push(7);
  while (queue.waiting() > 0) std::this_thread::yield();
  stop.request_stop();
  reader.join();
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, std::nullopt);
}

}  // namespace
}  // namespace valora::streams
