import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.streaming.StreamJob;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs jobs of Hadoop Streaming with the local runner, one after another in this process.
 *
 * <p>Each line of standard input names a file with the arguments of a job, each followed by a NUL. The answer is a line
 * "ended STATUS".
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
    try {
      return ToolRunner.run(new Configuration(), new StreamJob(), arguments);
    } catch (Exception error) {
      error.printStackTrace();
      return -1;
    }
  }
}
