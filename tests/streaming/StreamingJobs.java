import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.Counters;
import org.apache.hadoop.mapred.RunningJob;
import org.apache.hadoop.streaming.StreamJob;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs jobs of Hadoop Streaming with the local runner, one after another in this process.
 *
 * <p>Each line of standard input names a file with the arguments of a job, each followed by a NUL. The answer is a line
 * "counter GROUP NAME VALUE" for each counter, with the names encoded as in a URL, and a line "ended STATUS".
 */
public final class StreamingJobs {
  private StreamingJobs() {}

  public static void main(String[] unused) throws Exception {
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      String arguments = Files.readString(Path.of(order));
      System.out.println("ended " + run(arguments.split("\0")));
      System.out.flush();
    }
  }

  private static int run(String[] arguments) {
    StreamJob job = new StreamJob();
    try {
      int status = ToolRunner.run(new Configuration(), job, arguments);
      print(counters(job));
      return status;
    } catch (Exception error) {
      error.printStackTrace();
      return -1;
    }
  }

  /** Returns the counters of a job that has ended, or null; a subclass would look for classes in its own package. */
  private static Counters counters(StreamJob job) throws Exception {
    Field running = StreamJob.class.getDeclaredField("running_");
    running.setAccessible(true);
    RunningJob ended = (RunningJob) running.get(job);
    return ended == null ? null : ended.getCounters();
  }

  private static void print(Counters counters) {
    if (counters == null) {
      return;
    }
    for (Counters.Group group : counters) {
      for (Counters.Counter counter : group) {
        String names = encoded(group.getName()) + " " + encoded(counter.getName());
        System.out.println("counter " + names + " " + counter.getValue());
      }
    }
  }

  private static String encoded(String name) {
    return URLEncoder.encode(name, StandardCharsets.UTF_8);
  }
}
