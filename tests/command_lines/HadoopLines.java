import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.commons.cli.Option;
import org.apache.commons.cli.Options;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileOutputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.streaming.PipeMapRed;
import org.apache.hadoop.streaming.PipeMapper;
import org.apache.hadoop.streaming.StreamJob;
import org.apache.hadoop.util.GenericOptionsParser;
import org.apache.hadoop.util.ToolRunner;

/**
 * Says how Hadoop reads command lines of Hadoop Streaming, without running them.
 *
 * <p>The first line of standard input is a JSON list of properties to report, each other one a JSON list of words. The
 * first answer has the options that Hadoop knows, each other one what the job would be; null: Hadoop refuses the line.
 */
public final class HadoopLines {
  private static final ObjectMapper JSON = new ObjectMapper();

  private HadoopLines() {}

  public static void main(String[] unused) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    String[] keys = JSON.readValue(orders.readLine(), String[].class);
    answers.println(JSON.writeValueAsString(options()));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      answers.println(JSON.writeValueAsString(new Reader(keys).read(JSON.readValue(order, String[].class))));
    }
  }

  private static Map<String, Map<String, Integer>> options() throws Exception {
    StreamJob job = new StreamJob();
    Method setup = StreamJob.class.getDeclaredMethod("setupOptions");
    setup.setAccessible(true);
    setup.invoke(job);
    Method build = GenericOptionsParser.class.getDeclaredMethod("buildGeneralOptions", Options.class);
    build.setAccessible(true);
    GenericOptionsParser parser = new GenericOptionsParser(new Configuration(), new String[0]);
    Map<String, Map<String, Integer>> found = new LinkedHashMap<>();
    found.put("generic", counts((Options) build.invoke(parser, new Options())));
    found.put("streaming", counts((Options) field(StreamJob.class, job, "allOptions")));
    return found;
  }

  private static Map<String, Integer> counts(Options options) {
    Map<String, Integer> found = new TreeMap<>();
    for (Option each : options.getOptions()) {
      found.put(each.getOpt(), each.getArgs());
    }
    return found;
  }

  private static Object field(Class<?> of, Object object, String name) throws Exception {
    Field field = of.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(object);
  }

  /** A job that is read and not submitted. */
  private static final class Reader extends StreamJob {
    private final String[] keys;
    private Map<String, Object> found;

    Reader(String[] keys) {
      this.keys = keys;
    }

    Map<String, Object> read(String[] words) {
      try {
        ToolRunner.run(new Configuration(), this, words);
      } catch (Exception error) {
        error.printStackTrace();
        return null;
      }
      return found;
    }

    @Override
    public int submitAndMonitorJob() throws IOException {
      try {
        found = facts(jobConf_);
      } catch (Exception error) {
        throw new IOException(error);
      }
      return 0;
    }

    private Map<String, Object> facts(JobConf job) throws Exception {
      Map<String, Object> made = new LinkedHashMap<>();
      made.put("input", Arrays.stream(FileInputFormat.getInputPaths(job)).map(Object::toString).toArray());
      made.put("output", FileOutputFormat.getOutputPath(job).toString());
      for (String stage : new String[] {"map", "combine", "reduce"}) {
        made.put(stage, words(job.get("stream." + stage + ".streamprocessor")));
      }
      made.put("reduces", job.getNumReduceTasks());
      made.put("partitioner", job.getPartitionerClass().getSimpleName());
      made.put("inputFormat", job.getInputFormat().getClass().getSimpleName());
      made.put("env", environment(job.get("stream.addenvironment")));
      made.put("files", files(job));
      Map<String, String> properties = new TreeMap<>();
      for (String key : keys) {
        if (job.get(key) != null) {
          properties.put(key, job.get(key));
        }
      }
      made.put("properties", properties);
      return made;
    }

    private static Object words(String command) throws Exception {
      if (command == null) {
        return null;
      }
      Method split = PipeMapRed.class.getDeclaredMethod("splitArgs", String.class);
      split.setAccessible(true);
      return split.invoke(null, URLDecoder.decode(command, "UTF-8"));
    }

    private static Properties environment(String given) throws Exception {
      Method add = PipeMapRed.class.getDeclaredMethod("addEnvironment", Properties.class, String.class);
      add.setAccessible(true);
      Properties variables = new Properties();
      add.invoke(new PipeMapper(), variables, given);
      return variables;
    }

    private List<String> files(JobConf job) throws Exception {
      List<String> made = new ArrayList<>();
      String given = job.get("tmpfiles", "");
      for (String uri : given.isEmpty() ? new String[0] : given.split(",")) {
        made.add(uri.replaceFirst(".*[/#]", ""));
      }
      return made;
    }
  }
}
