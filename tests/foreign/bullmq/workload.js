// BullMQ at work: queues, a real worker, a flow, a scheduler, and jobs of every kind.
// Goes on until its standard input is closed, and for two minutes at most.
"use strict";

const { FlowProducer, Queue, QueueEvents, Worker } = require("bullmq");

const url = new URL(process.env.FOREIGN_REDIS_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const deadline = Date.now() + 600_000;
let finished = false;
process.stdin.on("end", () => (finished = true)).resume();

async function handle(job) {
  if (job.name === "fail") throw new Error("on purpose");
  if (job.name === "long") await until(() => finished, "the load ends"); // every audit sees an active job
  await job.updateProgress(50);
  if (job.name === "logged") await job.log("half of it");
  return { sum: (job.data.a ?? 0) + (job.data.b ?? 0) };
}

async function until(probe, what) {
  while (!(await probe())) {
    if (Date.now() > deadline) throw new Error(`not within ten minutes: ${what}`);
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

async function produce(queue, flows, turn) {
  const data = { a: 1, b: turn };
  const many = Array.from({ length: 8 }, (_, n) => ({
    name: "short",
    data: { a: n, b: turn },
    opts: { removeOnComplete: true },
  }));
  await queue.addBulk(many);
  await queue.add("plain", data);
  await queue.add("logged", data);
  await queue.add("named", data, { jobId: `order-${turn}` });
  await queue.add("urgent", data, { priority: 5, removeOnComplete: true });
  await queue.add("later", data, { delay: 300, removeOnComplete: true });
  await queue.add("fail", data);
  await queue.add("fail", data, { attempts: 2, backoff: { type: "fixed", delay: 200 } });
  await queue.add("once", data, { deduplication: { id: `once-${turn}`, ttl: 500 } });
  await flows.add({
    name: "plain",
    queueName: "video",
    data,
    children: [
      { name: "plain", queueName: "audio", data },
      { name: "plain", queueName: "audio", data },
    ],
  });
}

async function main() {
  const queue = new Queue("video", { connection });
  const other = new Queue("audio", { connection });
  const flows = new FlowProducer({ connection });
  const events = new QueueEvents("video", { connection });
  const workers = ["video", "audio"].map(
    (name) => new Worker(name, handle, { connection, concurrency: 4, metrics: { maxDataPoints: 60 } }),
  );
  await queue.upsertJobScheduler("every-second", { every: 1000 }, { name: "plain", opts: { removeOnComplete: true } });
  await queue.upsertJobScheduler("yearly", { pattern: "0 0 0 1 1 *" }, { name: "plain" });
  await queue.add("long", {}, { removeOnComplete: true });
  for (let turn = 0; turn < 5000 && !finished && Date.now() < deadline; turn++) {
    await produce(queue, flows, turn);
    await new Promise((resume) => setTimeout(resume, 20)); // full speed would only make the audits longer
    await until(async () => (await queue.getWaitingCount()) < 40, "the worker follows");
    if (turn === 0) {
      await until(async () => (await queue.getCompletedCount()) > 3 && (await queue.getFailedCount()) > 1, "jobs end");
      process.stdout.write("ready\n");
    }
  }
  await Promise.all(workers.map((worker) => worker.close()));
  for (let n = 0; n < 7; n++) await queue.add("plain", { a: n });
  await queue.add("later", {}, { delay: 3_600_000 });
  await queue.add("urgent", {}, { priority: 9 });
  await flows.add({ name: "plain", queueName: "video", children: [{ name: "plain", queueName: "audio" }] });
  await Promise.all([queue, other, flows, events].map((each) => each.close()));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
