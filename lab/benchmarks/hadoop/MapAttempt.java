package org.apache.hadoop.mapred;

import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.MRConfig;
import org.apache.hadoop.mapreduce.TaskCounter;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.split.JobSplit;
import org.apache.hadoop.mapreduce.split.JobSplitWriter;
import org.apache.hadoop.streaming.StreamJob;

/**
 * One map attempt of Hadoop Streaming, by Hadoop's own MapTask, in this process: no job client, no shuffle, no reduce.
 *
 * <p>Arguments: the input file, a folder to work in, the number of reduces, the sort buffer in MiB, the mapper's
 * command, and the combiner's ("" for none). Prints the attempt's CPU and elapsed seconds, without the start of the
 * virtual machine, its spills, and the size of its output.
 */
public final class MapAttempt {
  private MapAttempt() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = new Path("file://" + arguments[1]);
    JobConf job = configuration(arguments, folder);
    FileSystem files = FileSystem.getLocal(job);
    Path jobFolder = new Path(folder, "job");
    files.mkdirs(jobFolder);
    InputSplit[] splits = job.getInputFormat().getSplits(job, 1);
    if (splits.length != 1) {
      throw new IllegalStateException(splits.length + " splits instead of one");
    }
    JobSplitWriter.createSplitFiles(jobFolder, job, files, splits);
    JobSplit.TaskSplitMetaInfo split =
        org.apache.hadoop.mapreduce.split.SplitMetaInfoReader.readSplitMetaInfo(
            JobID.forName("job_0_0001"), files, job, jobFolder)[0];
    TaskAttemptID id = new TaskAttemptID("0", 1, TaskType.MAP, 0, 0);
    MapTask task = new MapTask(new Path(jobFolder, "job.xml").toString(), id, 0, split.getSplitIndex(), 1);
    job.setInt(JobContext.APPLICATION_ATTEMPT_ID, 1);
    task.setUser("bench");
    MROutputFiles outputs = new MROutputFiles();
    outputs.setConf(job);
    task.setConf(job);
    task.localizeConfiguration(job);
    task.setConf(job);
    job.setClass(MRConfig.TASK_LOCAL_OUTPUT_CLASS, MROutputFiles.class, MapOutputFile.class);

    double cpuBefore = cpuSeconds();
    long before = System.nanoTime();
    task.run(job, umbilical());
    double elapsed = (System.nanoTime() - before) / 1e9;
    double cpu = cpuSeconds() - cpuBefore;
    Counters counters = task.getCounters();
    long spilled = counters.findCounter(TaskCounter.SPILLED_RECORDS).getValue();
    long records = counters.findCounter(TaskCounter.MAP_OUTPUT_RECORDS).getValue();
    long size = files.getFileStatus(outputs.getOutputFile()).getLen();
    System.out.printf("%.3f %.3f %d %d %d%n", cpu, elapsed, records, spilled, size);
  }

  /** What Hadoop Streaming's client would submit; then where the task keeps its files. */
  private static JobConf configuration(String[] arguments, Path folder) throws Exception {
    List<String> streaming =
        new ArrayList<>(
            List.of(
                "-input", "file://" + arguments[0],
                "-output", folder + "/output",
                "-mapper", arguments[4],
                "-reducer", "cat",
                "-numReduceTasks", arguments[2]));
    if (!arguments[5].isEmpty()) {
      streaming.addAll(List.of("-combiner", arguments[5]));
    }
    JobConf job = StreamJob.createJob(streaming.toArray(new String[0]));
    job.set(MRConfig.FRAMEWORK_NAME, MRConfig.LOCAL_FRAMEWORK_NAME);
    job.set(JobContext.IO_SORT_MB, arguments[3]);
    job.setLong("mapreduce.input.fileinputformat.split.minsize", Long.MAX_VALUE);
    job.set(MRConfig.LOCAL_DIR, arguments[1] + "/local");
    job.set("hadoop.tmp.dir", arguments[1] + "/tmp");
    job.setMapOutputKeyClass(Text.class);
    job.setMapOutputValueClass(Text.class);
    return job;
  }

  /** Answers as an application master would that wants nothing. */
  private static TaskUmbilicalProtocol umbilical() {
    return (TaskUmbilicalProtocol)
        Proxy.newProxyInstance(
            MapAttempt.class.getClassLoader(),
            new Class<?>[] {TaskUmbilicalProtocol.class},
            (proxy, method, values) -> {
              if (method.getReturnType() == AMFeedback.class) {
                AMFeedback feedback = new AMFeedback();
                feedback.setTaskFound(true);
                return feedback;
              }
              if (method.getName().equals("fatalError") || method.getName().equals("fsError")) {
                throw new IllegalStateException("the attempt failed: " + values[1]);
              }
              return method.getReturnType() == boolean.class ? Boolean.TRUE : null;
            });
  }

  /** CPU seconds of this process and of its children that have ended. */
  private static double cpuSeconds() throws Exception {
    String stat = Files.readString(Paths.get("/proc/self/stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    long ticks = 0;
    for (int field = 11; field <= 14; field++) {
      ticks += Long.parseLong(fields[field]);
    }
    return ticks / 100.0;
  }
}
